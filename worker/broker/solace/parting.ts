/**
 * Letting a queue go while its calls may be on their way to this worker.
 *
 * A flow that is stopped may have a call in the library's hand, which nobody can look at before it is taken out. When the
 * flow is closed the broker has that call again, and counts that it was delivered; a call that this has happened to before
 * must not go back once more. And to take one out makes the broker send the next one, before it hears of anything else.
 * So the next one is waited for, too: what it is tells what the others are.
 *
 * | In hand | Came next | What becomes of them |
 * |---|---|---|
 * | nothing | | the flow is closed |
 * | may go back | nothing | goes back |
 * | may go back | may go back | both go back, and with them the one that the broker may send then: as queues keep their order, it was not delivered before either |
 * | may go back | must not | the first goes back, the second is set aside; the flow stays |
 * | must not | | is set aside; the flow stays |
 */
import { setImmediate } from "node:timers/promises";
import type solace from "solclientjs";
import type { Clock } from "../../support/clock.ts";
import type { Flow, FlowOptions } from "./flow.ts";

/** Milliseconds within which the broker sends the next call of a queue that has one. */
const nextWithinMs = 100;

/** Calls that go back together, at most, beside the one that crosses the end of the flow. */
const mostBack = 2;

/** How to part with a queue. */
export interface PartingParts {
  /** Whether the broker may count one delivery more of a call. */
  readonly mayGoBack: (flow: Flow, message: solace.Message) => boolean;
  /** Who gets what comes later, if the flow stays. */
  readonly onMessage: FlowOptions["onMessage"];
  readonly clock: Pick<Clock, "sleep">;
}

/**
 * Closes a flow of which nothing is held, unless that takes a call along that must not go back: then that call is set aside,
 * and the flow stays. Whether it is closed. When the signal aborts it waits for nothing more to come. Never rejects.
 */
export async function part(flow: Flow, parts: PartingParts, signal: AbortSignal): Promise<boolean> {
  const { mayGoBack, onMessage, clock } = parts;
  const goingBack: solace.Message[] = [];
  const decided = new AbortController();
  let isKept = false;
  flow.handTo((_flow, message) => {
    isKept = !mayGoBack(flow, message);
    if (isKept) {
      flow.setOpen(false);
      flow.setAside(message);
    } else if (goingBack.push(message) === mostBack) {
      void flow.close();
    } else {
      return;
    }
    decided.abort();
  });
  // What is in hand comes while it is opened, and what the socket has when that is read.
  flow.setOpen(true);
  await setImmediate();
  if (goingBack.length > 0) {
    const over = AbortSignal.any([signal, decided.signal]);
    await clock.sleep(nextWithinMs, over).catch(() => {});
    await setImmediate();
  }
  flow.handTo(onMessage);
  if (!isKept) await flow.close();
  else for (const message of goingBack) flow.settle(message, "failed");
  return !isKept;
}
