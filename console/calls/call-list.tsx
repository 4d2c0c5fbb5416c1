/** Running and recent calls as a timeline. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { formatCount, formatDuration } from "../format/format.ts";
import { useConsole } from "../state/store.ts";
import { useNow } from "../state/use-now.ts";
import { CallRow } from "./call-row.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { everyCall, filterCalls } from "./filter.ts";
import { PhaseLegend } from "./phase-bar.tsx";
import { axisOf } from "./timeline.ts";

export function CallList(): VNode {
  const { state } = useConsole();
  const [filter, setFilter] = useState(everyCall);
  const [isCommon, setIsCommon] = useState(false);
  const calls = filterCalls(state.calls, filter);
  const nowMs = useNow(calls.some(({ outcome }) => outcome === null));
  const axis = axisOf(calls, nowMs, isCommon);
  const running = state.calls.filter(({ outcome }) => outcome === null).length;
  const tools = [...new Set(state.calls.flatMap(({ tool }) => tool ?? []))].sort();
  return (
    <>
      <h1 tabIndex={-1}>Calls</h1>
      <FilterBar
        filter={filter}
        tools={tools}
        isCommon={isCommon}
        onFilter={setFilter}
        onCommon={setIsCommon}
      />
      <p class="quiet" role="status">
        {formatCount(calls.length, "call")}, {running} running
      </p>
      {calls.length === 0 ? (
        <p>No calls to show. Calls of agents and of this page appear here when they come.</p>
      ) : (
        <>
          <div class="spread">
            <PhaseLegend />
            <span class="quiet">bars span {formatDuration(axis.endMs - axis.startMs)}</span>
          </div>
          <ul class="card calls" aria-label="Calls, the newest first">
            {calls.map((call) => (
              <CallRow key={call.id} call={call} axis={axis} nowMs={nowMs} />
            ))}
          </ul>
        </>
      )}
    </>
  );
}
