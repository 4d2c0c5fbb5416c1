/**
 * `harness env build`.
 */
import { join } from "node:path";
import { ConfigError, readPackagesConfig } from "../../worker/config/config.ts";
import { ManifestError } from "../../worker/manifest/manifest.ts";
import { prepare } from "../../worker/prepare.ts";
import { ProfilesError } from "../../worker/sandbox/profiles-file.ts";
import { SandboxError } from "../../worker/sandbox/sandbox.ts";
import { createLogger } from "../../worker/telemetry/logger.ts";
import { showLogLine } from "../../worker/telemetry/pretty-log.ts";
import { createHost } from "../../worker/wiring/host.ts";
import { CommandError, type Context, UsageError, exit, withCauses } from "../context.ts";
import { printable } from "../invoke/screen.ts";
import { findPrograms } from "../prerequisites.ts";
import { createPassableDirectory } from "../temporary.ts";
import { layoutOf, usualToolsDir } from "../tools-layout.ts";
import { packageSettings } from "./variables.ts";

/** The command line. */
export interface BuildOptions {
  readonly tools?: string;
}

/** Installs what is missing. Returns 0 when all is there, else 1. */
export async function buildEnvironments(
  { tools }: BuildOptions,
  context: Context,
): Promise<number> {
  const { environment, signal, out, err } = context;
  const programs = await findPrograms(environment);
  await using home = await createPassableDirectory("str-env-");
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const isGiven = tools === undefined && given["MANIFEST_PATH"] !== undefined;
  const layout = isGiven ? undefined : await layoutOf(tools ?? (await usualToolsDir()));
  const settings = {
    SANDBOX_BWRAP_BIN: programs.bwrapBin,
    SANDBOX_PYTHON_BIN: programs.pythonBin,
    SANDBOX_WORK_DIR: join(home.path, "work"),
    ...given,
    ...packageSettings(environment),
    ...(layout !== undefined && {
      MANIFEST_PATH: layout.manifestPath,
      TOOLS_PYTHON_DIR: layout.pythonDir,
      TOOLS_NODE_DIR: layout.nodeDir,
    }),
  };
  const log = createLogger("info", { write: (line) => showLogLine(line.trimEnd(), err) });
  try {
    const config = readPackagesConfig(settings);
    const { text, problems } = await prepare(config, createHost(log, environment), signal);
    out.line(printable(text));
    return problems.length === 0 ? exit.success : exit.failure;
  } catch (error) {
    if (error instanceof SandboxError)
      throw new CommandError(withCauses(error).join("\n  because: "), { cause: error });
    const isUsage = [ConfigError, ManifestError, ProfilesError].some(
      (kind) => error instanceof kind,
    );
    if (isUsage) throw new UsageError((error as Error).message, { cause: error });
    throw error;
  }
}
