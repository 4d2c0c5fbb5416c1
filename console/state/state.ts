/** What the page knows, and what changes it. */
import type {
  CallDetail,
  CallView,
  OutputPiece,
  Sample,
  StatusView,
  WorkerView,
} from "../../worker/console/api.ts";
import type { BoundedText } from "./bounded-text.ts";

export interface ConsoleState {
  readonly session: "unknown" | "needed" | "open";
  /** Of the event stream. */
  readonly connection: "connecting" | "open" | "lost";
  readonly view: WorkerView | null;
  /** The newest first, at most {@link maxCalls}. */
  readonly calls: readonly CallView[];
  /** The oldest first, at most {@link maxSamples}. */
  readonly samples: readonly Sample[];
  /** The call whose page is shown. */
  readonly opened: OpenedCall | null;
  /** The worker's clock minus that of the browser, by the last sample. */
  readonly clockOffsetMs: number;
}

/** A call as its page shows it. */
export interface OpenedCall {
  readonly id: string;
  /** Null until it is loaded. */
  readonly detail: CallDetail | null;
  /** Why it could not be loaded. */
  readonly failure: string | null;
  readonly statuses: readonly StatusView[];
  readonly output: Readonly<Record<OutputPiece["stream"], BoundedText>>;
}

export type ConsoleEvent =
  | { readonly type: "session"; readonly session: "needed" | "open" }
  | { readonly type: "connection"; readonly connection: ConsoleState["connection"] }
  | { readonly type: "state"; readonly view: WorkerView }
  | { readonly type: "calls"; readonly calls: readonly CallView[] }
  | { readonly type: "call"; readonly call: CallView }
  | { readonly type: "samples"; readonly samples: readonly Sample[] }
  | { readonly type: "sample"; readonly sample: Sample; readonly nowMs: number }
  | { readonly type: "status"; readonly status: StatusView }
  | { readonly type: "output"; readonly piece: OutputPiece }
  | { readonly type: "opened"; readonly id: string }
  | { readonly type: "loaded"; readonly detail: CallDetail }
  | { readonly type: "failed"; readonly id: string; readonly failure: string };

export const maxCalls = 200;
export const maxSamples = 300;
/** Statuses of the opened call. */
export const maxStatuses = 500;
/** Characters of each output stream of the opened call. */
export const maxOutputLength = 64 * 1024;

export const initialState: ConsoleState = {
  session: "unknown",
  connection: "connecting",
  view: null,
  calls: [],
  samples: [],
  opened: null,
  clockOffsetMs: 0,
};
