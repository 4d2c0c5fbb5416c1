/** How events change the state; nothing here knows the browser. */
import type { CallDetail, CallView, StatusView } from "../../worker/console/api.ts";
import { appendText, emptyText, joinTexts } from "./bounded-text.ts";
import {
  initialState,
  maxCalls,
  maxOutputLength,
  maxSamples,
  maxStatuses,
  type ConsoleEvent,
  type ConsoleState,
  type OpenedCall,
} from "./state.ts";

/** The state after an event. */
export function reduce(state: ConsoleState, event: ConsoleEvent): ConsoleState {
  switch (event.type) {
    case "session":
      // Without a session nothing stays of the last one.
      return { ...(event.session === "open" ? state : initialState), session: event.session };
    case "connection":
      return { ...state, connection: event.connection };
    case "state":
      return { ...state, view: event.view };
    case "calls":
      return { ...state, calls: event.calls.slice(0, maxCalls) };
    case "samples":
      return { ...state, samples: event.samples.slice(-maxSamples) };
    case "sample": {
      const samples = [...state.samples, event.sample].slice(-maxSamples);
      return { ...state, samples, clockOffsetMs: event.sample.atMs - event.nowMs };
    }
    case "call":
      return {
        ...state,
        calls: withCall(state.calls, event.call),
        opened: openedWithCall(state.opened, event.call),
      };
    default:
      return { ...state, opened: reduceOpened(state.opened, event) };
  }
}

/** Replaces a call, or adds it at its place; the oldest ended call makes room. */
function withCall(calls: readonly CallView[], call: CallView): readonly CallView[] {
  const known = calls.findIndex(({ id }) => id === call.id);
  if (known !== -1) return calls.with(known, call);
  const place = calls.findIndex(({ number }) => number < call.number);
  const added = calls.toSpliced(place === -1 ? calls.length : place, 0, call);
  if (added.length <= maxCalls) return added;
  const oldestEnded = added.findLastIndex(({ outcome }) => outcome !== null);
  return added.toSpliced(oldestEnded === -1 ? added.length - 1 : oldestEnded, 1);
}

function openedWithCall(opened: OpenedCall | null, call: CallView): OpenedCall | null {
  if (opened?.id !== call.id || opened.detail === null) return opened;
  return { ...opened, detail: { ...opened.detail, call } };
}

function reduceOpened(
  opened: OpenedCall | null,
  event: Extract<ConsoleEvent, { type: "status" | "output" | "opened" | "loaded" | "failed" }>,
): OpenedCall | null {
  switch (event.type) {
    case "opened":
      return newlyOpened(event.id);
    case "loaded":
      return opened?.id === event.detail.call.id ? withDetail(opened, event.detail) : opened;
    case "failed":
      return opened?.id === event.id ? { ...opened, failure: event.failure } : opened;
    case "status": {
      if (opened?.id !== event.status.callId) return opened;
      return { ...opened, statuses: [...opened.statuses, event.status].slice(-maxStatuses) };
    }
    case "output": {
      const { callId, stream, text } = event.piece;
      if (opened?.id !== callId) return opened;
      const after = appendText(opened.output[stream], text, maxOutputLength);
      return { ...opened, output: { ...opened.output, [stream]: after } };
    }
  }
}

function newlyOpened(id: string): OpenedCall {
  return {
    id,
    detail: null,
    failure: null,
    statuses: [],
    output: { stdout: emptyText, stderr: emptyText },
  };
}

/** Merges what is stored with what came since the page asked for it. */
function withDetail(opened: OpenedCall, detail: CallDetail): OpenedCall {
  const output = { ...opened.output };
  for (const { stream, text, isCut } of detail.output) {
    output[stream] = joinTexts({ text, isCut }, output[stream], maxOutputLength);
  }
  const isStored = (live: StatusView): boolean =>
    detail.statuses.some(({ atMs, text }) => atMs === live.atMs && text === live.text);
  const live = opened.statuses.filter((status) => !isStored(status));
  // A change of the call may have come after the worker had read the details.
  const isOlder = opened.detail?.call.outcome !== null && detail.call.outcome === null;
  const call = (isOlder ? opened.detail?.call : undefined) ?? detail.call;
  const statuses = [...detail.statuses, ...live]
    .toSorted((a, b) => a.atMs - b.atMs)
    .slice(-maxStatuses);
  return { ...opened, detail: { ...detail, call }, failure: null, output, statuses };
}
