/**
 * Sandboxes of gVisor: containers of its program `runsc`, with a kernel that is a program.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { openCgroups } from "../cgroup/host-cgroups.ts";
import { openOci } from "../oci/backend.ts";
import { type BackendOptions, type SandboxBackend, SandboxError } from "../sandbox.ts";
import { GvisorRuntime } from "./runtime.ts";
import type { GvisorSettings } from "./settings.ts";

const run = promisify(execFile);

/** Milliseconds that runsc may take to tell its version. */
const versionTimeoutMs = 10_000;
/** Bytes that it may say. */
const maxVersionBytes = 64 * 1024;

/** Options of the gVisor backend. */
export interface GvisorOptions extends BackendOptions, GvisorSettings {
  /** Leaves control groups alone, so that the resource monitor does their work. */
  readonly withoutCgroups?: boolean;
}

/**
 * Opens the backend and runs a container. The caller owns it. Throws SandboxError; rejects with the
 * signal's reason.
 */
export async function openGvisor(
  options: GvisorOptions,
  signal: AbortSignal,
): Promise<SandboxBackend> {
  const { runscBin, clock, withoutCgroups = false } = options;
  const version = await versionOf(runscBin, signal);
  const openRuntime = async (): Promise<GvisorRuntime> => {
    const cgroups = withoutCgroups ? undefined : (await openCgroups(options, signal)).cgroups;
    const technology = [version, cgroups?.description].filter(Boolean).join(", ");
    return new GvisorRuntime({ runscBin, technology, cgroups, clock });
  };
  const { backend } = await openOci(options, openRuntime, ["/usr/bin/true"], signal);
  return backend;
}

async function versionOf(runscBin: string, signal: AbortSignal): Promise<string> {
  try {
    const { stdout } = await run(runscBin, ["--version"], {
      ...{ signal, timeout: versionTimeoutMs, maxBuffer: maxVersionBytes, env: {} },
    });
    const [line = ""] = stdout.split("\n");
    if (!line.startsWith("runsc version ")) throw new Error(`it says "${line}" of its version`);
    return line.replace("runsc version", "gVisor");
  } catch (error) {
    signal.throwIfAborted();
    throw new SandboxError(`cannot use ${runscBin} as gVisor's runsc`, {
      cause: error,
      setting: "runscBin",
    });
  }
}
