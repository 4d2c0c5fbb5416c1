/**
 * The worker that a backend of the library is: its configuration, and a manifest of one entry.
 */
import { existsSync } from "node:fs";
import { chmod, lstat, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../config/config.ts";
import type { ProgramLanguage } from "../../protocol/tool-calls/program.ts";

/** The entry's name in the manifest. */
export const programEntry = "program";

/** What decides the configuration. */
export interface RuntimeSettings {
  readonly languages: readonly ProgramLanguage[];
  /** Profile of an execution that names none. */
  readonly defaultProfile: string;
  /** Executions at once. */
  readonly maxConcurrent: number;
  /** Executions that wait for others. */
  readonly maxQueued: number;
  /** Idle sandboxes for each interpreter and profile. */
  readonly warm: { readonly min: number; readonly max: number };
  readonly allowUnsafe: boolean;
  /** Directories of modules that code imports. */
  readonly modules: { readonly python?: string; readonly node?: string };
  /** Variables of a worker that say how sandboxes are made, such as `SANDBOX_PYTHON_BIN`. */
  readonly variables: Environment;
}

/** Directory and environment; the caller owns the directory. */
export interface RuntimeHome extends AsyncDisposable {
  readonly environment: Environment;
}

/** Makes the directory, with a manifest in it. */
export async function makeRuntimeHome(settings: RuntimeSettings): Promise<RuntimeHome> {
  const base = await ownBase();
  await sweep(base);
  const home = await mkdtemp(join(base, `${process.pid}-`));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(home, { recursive: true, force: true }));
  await chmod(home, openMode);
  const below = async (name: string): Promise<string> => {
    const path = join(home, name);
    await mkdir(path);
    return path;
  };
  const { languages, warm, modules } = settings;
  const entry = {
    ...{ runtime: "code", languages, warm, gateway: { tools: ["runtime:*"] } },
    ...{ description: "Runs code.", sandbox_profile: settings.defaultProfile },
  };
  const manifestPath = join(home, "manifest.yaml");
  const manifest = { version: 1, tools: { [programEntry]: entry } };
  await writeFile(manifestPath, JSON.stringify(manifest));
  const environment = {
    ...{ SAM_NAMESPACE: "runtime", DEV_BROKER_HOST: "127.0.0.1", DEV_BROKER_PORT: "1" },
    MANIFEST_PATH: manifestPath,
    TOOLS_PYTHON_DIR: modules.python ?? (await below("python")),
    TOOLS_NODE_DIR: modules.node ?? (await below("node")),
    SANDBOX_WORK_DIR: await below("work"),
    SANDBOX_MAX_CONCURRENT: String(settings.maxConcurrent),
    SANDBOX_MAX_QUEUED: String(settings.maxQueued),
    SANDBOX_MAX_SUSPENDED: String(settings.maxQueued),
    SANDBOX_ALLOW_UNSAFE: settings.allowUnsafe ? "1" : "0",
    ...{ ARTIFACT_SERVICE_TYPE: "filesystem", ARTIFACT_BASE_PATH: await below("artifacts") },
    ...{ HEALTH_PORT: "0", TOOL_LOGS: "caller", TOOL_LOGS_MAX_KB: "64" },
    ...settings.variables,
  };
  const owned = stack.move();
  return { environment, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Sandboxes of another user reach what is below. */
const openMode = 0o711;

/** The directory of this user's backends. Throws where somebody else has its name. */
async function ownBase(): Promise<string> {
  const uid = process.getuid?.();
  const base = join(tmpdir(), `str-runtime-${uid}`);
  await mkdir(base, { mode: openMode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const found = await lstat(base);
  if (!found.isDirectory() || found.uid !== uid)
    throw new Error(`${base} is no directory of this user`);
  await chmod(base, openMode);
  return base;
}

/** Removes the directories of processes that have ended without it. */
async function sweep(base: string): Promise<void> {
  for (const name of await readdir(base)) {
    const [, pid] = /^(\d+)-/.exec(name) ?? [];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    await rm(join(base, name), { recursive: true, force: true });
  }
}
