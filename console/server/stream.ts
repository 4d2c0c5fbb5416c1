/** Follows the worker's event stream, and opens it again when it ends. */
import type {
  CallView,
  OutputPiece,
  Sample,
  StatusView,
  WorkerView,
} from "../../worker/console/api.ts";
import type { ConsoleEvent } from "../state/state.ts";
import { eventsOf } from "./events.ts";
import { authorization } from "./token.ts";

/** Milliseconds before the stream is opened again. */
const reopenMs = 2_000;
const unauthorized = 401;

/** How the events of the stream reach the state, by their names. */
const readers: Readonly<Record<string, (data: unknown) => ConsoleEvent>> = {
  state: (data) => ({ type: "state", view: data as WorkerView }),
  calls: (data) => ({ type: "calls", calls: data as readonly CallView[] }),
  call: (data) => ({ type: "call", call: data as CallView }),
  samples: (data) => ({ type: "samples", samples: data as readonly Sample[] }),
  sample: (data) => ({ type: "sample", sample: data as Sample, nowMs: Date.now() }),
  status: (data) => ({ type: "status", status: data as StatusView }),
  output: (data) => ({ type: "output", piece: data as OutputPiece }),
};

/**
 * Follows until the signal aborts, or the worker refuses the token; whether it did. Never rejects.
 */
export async function followStream(
  dispatch: (event: ConsoleEvent) => void,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    const isRefused = await followOnce(dispatch, signal).catch(() => false);
    if (signal.aborted || isRefused) return isRefused;
    dispatch({ type: "connection", connection: "lost" });
    await pause(signal);
  }
  return false;
}

/** Follows one stream to its end. Whether the worker has refused the token. */
async function followOnce(
  dispatch: (event: ConsoleEvent) => void,
  signal: AbortSignal,
): Promise<boolean> {
  const { status, ok, body } = await fetch("/api/events", { headers: authorization(), signal });
  if (!ok || body === null) return status === unauthorized;
  dispatch({ type: "connection", connection: "open" });
  for await (const { name, data } of eventsOf(body)) {
    const read = readers[name];
    if (read !== undefined) dispatch(read(JSON.parse(data)));
  }
  return false;
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, reopenMs);
    const wake = (): void => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", wake, { once: true });
  });
}
