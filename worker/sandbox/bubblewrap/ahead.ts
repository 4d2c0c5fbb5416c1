/**
 * What bubblewrap can do before calls are there.
 */
import type { AheadOfCalls, Launch, ParkedSandbox, SandboxRequest, Template } from "../sandbox.ts";
import { BubblewrapParked } from "./parked-sandbox.ts";
import { privateBytesOf } from "./private-bytes.ts";
import { awaitReady } from "./probe/readiness.ts";
import { type TemplateParts, openTemplate } from "./template/template.ts";

/** Makes sandboxes ahead of calls, of what those that come with their call are made of. */
export class BubblewrapAhead implements AheadOfCalls {
  readonly #parts: TemplateParts;

  constructor(parts: TemplateParts) {
    this.#parts = parts;
  }

  async park(request: SandboxRequest, launch: Launch, signal: AbortSignal): Promise<ParkedSandbox> {
    signal.throwIfAborted();
    await using held = new AsyncDisposableStack();
    const sandbox = held.use(await this.#parts.make(request));
    const command = await sandbox.startWaiting(launch);
    held.use(command.channel);
    await awaitReady(command, this.#parts.sandboxes.clock, signal);
    const parked = new BubblewrapParked(
      sandbox,
      command,
      await privateBytesOf(command.execution.pid),
    );
    held.move();
    return parked;
  }

  openTemplate(request: SandboxRequest, launch: Launch, signal: AbortSignal): Promise<Template> {
    return openTemplate(this.#parts, request, launch, signal);
  }
}
