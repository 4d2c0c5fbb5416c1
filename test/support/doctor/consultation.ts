/**
 * `str-worker doctor` without a process of its own, for what it finds; its command line and signals
 * need `WorkerProcess`.
 */
import { readSandboxConfig } from "../../../worker/config/config.ts";
import { consultDoctor } from "../../../worker/doctor.ts";
import { exit, exitCodeOf, explain } from "../../../worker/exit.ts";
import { closeInheritedDescriptors } from "../../../worker/support/inherited-descriptors.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { createHost } from "../../../worker/wiring/host.ts";

/** What the doctor says, and with which code it would exit. */
export interface Consultation {
  readonly code: number | null;
  readonly output: string;
}

/** Asks the doctor what this host allows sandboxes. */
export async function consultHere(
  environment: Readonly<Record<string, string>> = {},
  isJson = true,
  signal: AbortSignal = AbortSignal.timeout(60_000),
): Promise<Consultation> {
  // As the worker's main does: what started the tests may have left its own open.
  closeInheritedDescriptors();
  const { stderr: screen } = process;
  const choice = { isJson, isAttack: false, profile: undefined, start: "cold", screen } as const;
  try {
    const config = readSandboxConfig(environment);
    const host = createHost(createLogger("error", 2), environment);
    const { text, isGood } = await consultDoctor(config, host, choice, signal);
    return { code: isGood ? exit.ok : exit.unfit, output: `${text}\n` };
  } catch (error) {
    return { code: exitCodeOf(error), output: `str-worker: ${explain(error)}\n` };
  }
}
