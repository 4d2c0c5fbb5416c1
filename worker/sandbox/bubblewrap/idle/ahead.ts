/**
 * Sandboxes that load a tool before its call.
 */
import type { AheadOfCalls } from "../../sandbox.ts";
import { awaitReady } from "./await-ready.ts";
import { parkedSandbox } from "./parked-sandbox.ts";
import { privateBytesOf } from "./private-bytes.ts";
import { type TemplateParts, openTemplate } from "../template/template.ts";

/** Makes them of the same parts as cold sandboxes. */
export function bubblewrapAhead(parts: TemplateParts): AheadOfCalls {
  return {
    openTemplate: (request, launch, signal) => openTemplate(parts, request, launch, signal),
    async park(request, launch, signal) {
      signal.throwIfAborted();
      await using held = new AsyncDisposableStack();
      const sandbox = held.use(await parts.make(request));
      const command = await sandbox.startWaiting(launch);
      held.use(command.channel);
      await awaitReady(command, parts.sandboxes.clock, signal);
      const privateBytes = await privateBytesOf(command.execution.pid);
      return parkedSandbox({ sandbox, command, privateBytes, owned: held.move() });
    },
  };
}
