/**
 * The wait for a command that loads a tool before its call.
 */
import type { Clock } from "../../../support/clock.ts";
import { settlesWithin } from "../../../support/timeout.ts";
import { SandboxError } from "../../sandbox.ts";
import type { WaitingCommand } from "../cold-sandbox.ts";

/** Milliseconds for the import of a tool's module. */
const readyTimeoutMs = 60_000;

/** Waits until the command reports ready. Throws SandboxError; the signal's reason. */
export async function awaitReady(
  { channel, execution }: WaitingCommand,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const saying = Promise.race([channel.said(), execution.exited]);
  const isSaid = await settlesWithin(saying, readyTimeoutMs, clock, signal);
  signal.throwIfAborted();
  if (!isSaid) {
    const message = `a tool was not loaded within ${readyTimeoutMs} ms`;
    // Further attempts would take the processor from other tools.
    throw new SandboxError(message, { isUnfit: true });
  }
  const said = await saying;
  if ("kind" in said && said.kind === "ready") return execution.rest();
  if ("kind" in said && said.kind === "unfit")
    throw new SandboxError(`a tool cannot be loaded ahead: ${said.reason}`, { isUnfit: true });
  const { exitCode, signal: endSignal, exceeded, stderr } = await execution.stop(0);
  const cause = exceeded?.limit ?? endSignal ?? `exit code ${exitCode}`;
  throw new SandboxError(`a tool ended while it was loaded: ${cause}; ${stderr.text.slice(-1000)}`);
}
