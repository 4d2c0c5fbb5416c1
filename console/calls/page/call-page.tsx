/** A call: live while it runs, with its result and what it cost afterwards. */
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { CallDetail, CallView } from "../../../worker/console/api.ts";
import { formatDuration, formatTime } from "../../format/format.ts";
import { toolAddress } from "../../routes.ts";
import { loadCall, messageOf } from "../../server/requests.ts";
import type { OpenedCall } from "../../state/state.ts";
import { useConsole } from "../../state/store.ts";
import { useNow } from "../../state/use-now.ts";
import { Notice } from "../../ui/notice.tsx";
import { JsonTree } from "../../values/json-tree.tsx";
import { CancelButton } from "../cancel-button.tsx";
import { Outcome } from "../outcome.tsx";
import { elapsedMs } from "../timeline.ts";
import { Artifacts } from "./artifacts.tsx";
import { Execution } from "./execution.tsx";
import { Output, Statuses } from "./output.tsx";
import { Phases } from "./phases.tsx";
import { Result } from "./result.tsx";

export function CallPage({ id }: { readonly id: string }): VNode {
  const { state } = useConsole();
  const opened = state.opened?.id === id ? state.opened : null;
  const { detail = null, failure = null } = opened ?? {};
  const call = detail?.call ?? state.calls.find((one) => one.id === id);
  useOpenedCall(id, call !== undefined && call.outcome !== null);
  return (
    <>
      <nav aria-label="Breadcrumb" class="trail">
        <a href="#/calls">Calls</a>
      </nav>
      {failure !== null && <Notice kind="problem">{failure}</Notice>}
      {call === undefined ? (
        <h1 tabIndex={-1}>{failure === null ? "Loading the call…" : "Call"}</h1>
      ) : (
        <Head call={call} detail={detail} />
      )}
      {call !== undefined && opened !== null && detail !== null && (
        <Parts call={call} detail={detail} opened={opened} />
      )}
    </>
  );
}

function Head(properties: { readonly call: CallView; readonly detail: CallDetail | null }): VNode {
  const { call, detail } = properties;
  const nowMs = useNow(call.outcome === null);
  const { tool } = call;
  return (
    <>
      <div class="head">
        <h1 tabIndex={-1}>
          <span class="name">{tool ?? "unknown tool"}</span>{" "}
          <span class="quiet">#{call.number}</span>
        </h1>
        <div class="actions">
          {call.outcome === null && <CancelButton call={call} />}
          {tool !== null && (detail?.request ?? null) !== null && (
            <a class="button" href={toolAddress(tool, call.id)}>
              Call again
            </a>
          )}
          {tool !== null && (
            <a class="button" href={toolAddress(tool)}>
              Tool
            </a>
          )}
        </div>
      </div>
      <p class="summary" role="status">
        <Outcome call={call} />
        {call.isCancelled && <span>cancelled</span>}
        {call.limitReached !== null && <span>limit reached: {call.limitReached}</span>}
      </p>
      <p class="meta">
        {formatDuration(elapsedMs(call, nowMs))} · received {formatTime(call.receivedAtMs, nowMs)} ·{" "}
        {call.isOwn ? "from here" : "from an agent"}
      </p>
    </>
  );
}

function Parts(properties: {
  readonly call: CallView;
  readonly detail: CallDetail;
  readonly opened: OpenedCall;
}): VNode {
  const { call, detail, opened } = properties;
  return (
    <div class="stack">
      {!call.isOwn && (
        <Notice kind="note">
          An agent made this call: the console does not show its arguments and its result.
        </Notice>
      )}
      {detail.answer !== null && <Result answer={detail.answer} />}
      <Artifacts callId={call.id} artifacts={detail.artifacts} />
      <Statuses statuses={opened.statuses} />
      <Output output={opened.output} isRunning={call.outcome === null} isOwn={call.isOwn} />
      <Phases call={call} />
      <Execution call={call} />
      {detail.request !== null && (
        <section class="card stack" aria-labelledby="request-title">
          <h2 id="request-title">Request</h2>
          <JsonTree value={detail.request.arguments} label="arguments" />
          {Object.keys(detail.request.inputs).length > 0 && (
            <JsonTree value={{ ...detail.request.inputs }} label="inputs" />
          )}
        </section>
      )}
    </div>
  );
}

/** Loads the call when its page opens, after the stream was lost, and when it has ended. */
function useOpenedCall(id: string, hasEnded: boolean): void {
  const { state, dispatch } = useConsole();
  useEffect(() => dispatch({ type: "opened", id }), [id]);
  const isConnected = state.connection === "open";
  useEffect(() => {
    if (!isConnected) return;
    const stop = new AbortController();
    loadCall(id, stop.signal).then(
      (detail) => dispatch({ type: "loaded", detail }),
      (error: unknown) => {
        if (!stop.signal.aborted) dispatch({ type: "failed", id, failure: messageOf(error) });
      },
    );
    return () => stop.abort();
  }, [id, hasEnded, isConnected]);
}
