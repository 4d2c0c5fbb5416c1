/** The worker's event stream; EventSource reconnects by itself. */
import type {
  CallView,
  OutputPiece,
  Sample,
  StatusView,
  WorkerView,
} from "../../worker/console/api.ts";
import type { ConsoleEvent } from "../state/state.ts";
import { hasSession } from "./requests.ts";

/** Wait before a stream that the worker refused is opened again. */
const refusedMs = 3_000;

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

/** Follows the stream until `signal` aborts, or the session has ended. */
export function followStream(dispatch: (event: ConsoleEvent) => void, signal: AbortSignal): void {
  if (signal.aborted) return;
  const source = new EventSource("/api/events");
  const close = (): void => source.close();
  signal.addEventListener("abort", close, { once: true });
  for (const [name, read] of Object.entries(readers)) {
    source.addEventListener(name, (event: MessageEvent<string>) => {
      dispatch(read(JSON.parse(event.data)));
    });
  }
  source.onopen = () => dispatch({ type: "connection", connection: "open" });
  source.onerror = () => {
    dispatch({ type: "connection", connection: "lost" });
    // A closed one was answered with an error, such as that of a worker that knows no such session.
    if (source.readyState !== EventSource.CLOSED) return;
    signal.removeEventListener("abort", close);
    void followAgain(dispatch, signal);
  };
}

async function followAgain(
  dispatch: (event: ConsoleEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const isOpen = await hasSession(signal).catch(() => true);
  if (!isOpen) return dispatch({ type: "session", session: "needed" });
  setTimeout(() => followStream(dispatch, signal), refusedMs);
}
