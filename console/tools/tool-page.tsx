/** A tool, and the form that calls it. */
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CallDetail } from "../../worker/console/api.ts";
import { loadCall, messageOf } from "../server/requests.ts";
import { useConsole } from "../state/store.ts";
import { JsonTree } from "../values/json-tree.tsx";
import { Notice } from "../ui/notice.tsx";
import { CallForm } from "./call-form.tsx";
import { metaOf } from "./tool-list.tsx";

type Request = NonNullable<CallDetail["request"]>;

export function ToolPage(properties: {
  readonly name: string;
  /** The call whose arguments fill the form. */
  readonly again: string | null;
}): VNode {
  const { name, again } = properties;
  const { state } = useConsole();
  const tool = state.view?.tools.find((one) => one.name === name);
  const earlier = useRequest(again);
  if (tool === undefined) {
    const reason = state.view?.manifest.unavailable.find((one) => one.tool === name)?.reason;
    return (
      <>
        <h1 tabIndex={-1} class="name">
          {name}
        </h1>
        <Notice kind="warning">
          The worker does not serve this tool{reason === undefined ? "." : `: ${reason}`}
        </Notice>
        <p>
          <a href="#/tools">All tools</a>
        </p>
      </>
    );
  }
  return (
    <>
      <nav aria-label="Breadcrumb" class="trail">
        <a href="#/tools">Tools</a>
      </nav>
      <h1 tabIndex={-1} class="name">
        {tool.name}
      </h1>
      {tool.description !== null && <p class="lines">{tool.description}</p>}
      <p class="meta">{metaOf(tool)}</p>
      {!tool.isIdempotent && (
        <p class="meta">The worker never runs a call of this tool twice (not idempotent).</p>
      )}
      {tool.problem !== null && <Notice kind="warning">{tool.problem}</Notice>}
      {earlier.problem !== null && <Notice kind="problem">{earlier.problem}</Notice>}
      {!earlier.isLoading && (
        <CallForm tool={tool} profiles={state.view?.profiles ?? []} given={earlier.request} />
      )}
      {tool.parameters !== null && (
        <details class="card">
          <summary>Schema of the arguments</summary>
          <JsonTree value={tool.parameters} label="schema" />
        </details>
      )}
    </>
  );
}

/** The request of an earlier call. */
function useRequest(id: string | null): {
  readonly isLoading: boolean;
  readonly request: Request | null;
  readonly problem: string | null;
} {
  const [loaded, setLoaded] = useState({
    isLoading: id !== null,
    request: null as Request | null,
    problem: null as string | null,
  });
  useEffect(() => {
    if (id === null) return;
    const stop = new AbortController();
    loadCall(id, stop.signal).then(
      ({ request }) => setLoaded({ isLoading: false, request, problem: null }),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        setLoaded({ isLoading: false, request: null, problem: messageOf(error) });
      },
    );
    return () => stop.abort();
  }, [id]);
  return loaded;
}
