/**
 * Subscriptions as clients ask for them: their own, and those of queues.
 */
import { MalformedError, readNumber, readText, slice } from "./wire/fields.ts";

/** A client wants a subscription to be added or removed. */
export interface SubscriptionRequest {
  readonly action: "add" | "remove";
  /** The queue that it is for; undefined when the client itself wants to hear the topics. */
  readonly queue: string | undefined;
  readonly topic: string;
  readonly wantsAnswer: boolean;
}

const typeMask = 0x7f;
const actions: Readonly<
  Record<number, { readonly action: "add" | "remove"; readonly isForQueue: boolean }>
> = {
  0: { action: "add", isForQueue: false },
  1: { action: "remove", isForQueue: false },
  2: { action: "add", isForQueue: true },
  3: { action: "remove", isForQueue: true },
};
const answerBit = 8;
const headBytes = 6;

/** Reads the request. Throws MalformedError. */
export function decodeSubscriptionRequest(payload: Buffer): SubscriptionRequest {
  const [head = 0, , , , , flags = 0] = slice(payload, 0, headBytes);
  const known = actions[head & typeMask];
  if (known === undefined) throw new MalformedError(`subscription message ${head & typeMask}`);
  const body = slice(payload, headBytes, readNumber(payload.subarray(1, 5)));
  const { action, isForQueue } = known;
  const wantsAnswer = (flags & answerBit) !== 0;
  if (!isForQueue) return { action, wantsAnswer, queue: undefined, topic: readText(body) };
  const queue = readCounted(body, 0);
  return { action, wantsAnswer, queue: queue.text, topic: readCounted(body, queue.next).text };
}

/** Text behind a byte that counts its bytes, NUL included. */
function readCounted(bytes: Buffer, at: number): { readonly text: string; readonly next: number } {
  const [length = 0] = slice(bytes, at, at + 1);
  const next = at + 1 + length;
  return { text: readText(slice(bytes, at + 1, next)), next };
}
