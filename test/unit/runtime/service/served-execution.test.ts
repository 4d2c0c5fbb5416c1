/**
 * The one request of a connection, where no peer shows what happens.
 */
import { expect, test, vi } from "vitest";
import type { Connection } from "../../../../worker/runtime/service/connection.ts";
import { handshakeMs } from "../../../../worker/runtime/service/limits.ts";
import type { CallerRequest } from "../../../../worker/runtime/service/messages.ts";
import { serveConnection } from "../../../../worker/runtime/service/served-execution.ts";
import { type Clock, systemClock } from "../../../../worker/support/clock.ts";
import { Semaphore } from "../../../../worker/support/semaphore.ts";
import { abortable } from "../../../../worker/support/timeout.ts";
import { scriptedBackend } from "../../../support/runtime/scripted-backend.ts";

test("a connection without a request in time is refused", async () => {
  const sleep = vi.fn<Clock["sleep"]>(async () => undefined);
  const refuse = vi.fn();
  const ended = new AbortController().signal;
  const next = (signal: AbortSignal) => abortable(new Promise<never>(() => undefined), signal);
  const connection = { next, refuse, ended } as unknown as Connection<CallerRequest>;
  await serveConnection(connection, {
    ...{ backend: scriptedBackend(), closing: ended, onError: () => undefined },
    permits: new Semaphore({ capacity: 1, maxWaiting: 1 }),
    clock: { ...systemClock, sleep },
  });
  expect(refuse).toHaveBeenCalledOnce();
  expect(sleep.mock.calls[0]![0]).toBe(handshakeMs);
});
