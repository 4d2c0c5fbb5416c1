/**
 * The worker that a backend of the library is: its configuration, and a manifest of one entry.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Environment } from "../../config/config.ts";
import type { ProgramLanguage } from "../../protocol/tool-calls/program.ts";
import { makeHome, workIn } from "./homes.ts";

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
  /** The directory that those of all processes are in. */
  readonly base: string;
}

/** Makes the directory, with a manifest in it. */
export async function makeRuntimeHome(settings: RuntimeSettings): Promise<RuntimeHome> {
  await using stack = new AsyncDisposableStack();
  const { base, path: home } = stack.use(await makeHome());
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
    SANDBOX_WORK_DIR: await below(workIn),
    SANDBOX_MAX_CONCURRENT: String(settings.maxConcurrent),
    SANDBOX_MAX_QUEUED: String(settings.maxQueued),
    SANDBOX_MAX_SUSPENDED: String(settings.maxQueued),
    SANDBOX_ALLOW_UNSAFE: settings.allowUnsafe ? "1" : "0",
    ...{ ARTIFACT_SERVICE_TYPE: "filesystem", ARTIFACT_BASE_PATH: await below("artifacts") },
    ...{ HEALTH_PORT: "0", TOOL_LOGS: "caller", TOOL_LOGS_MAX_KB: "64" },
    ...settings.variables,
  };
  const owned = stack.move();
  return { environment, base, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
