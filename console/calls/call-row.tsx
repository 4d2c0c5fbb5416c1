/** A call in the list. */
import type { VNode } from "preact";
import type { CallView } from "../../worker/console/api.ts";
import { formatDuration, formatTime } from "../format/format.ts";
import { callAddress } from "../routes.ts";
import { CancelButton } from "./cancel-button.tsx";
import { Outcome } from "./outcome.tsx";
import { PhaseBar } from "./phase-bar.tsx";
import { elapsedMs, segmentsOf, type Axis } from "./timeline.ts";

export function CallRow(properties: {
  readonly call: CallView;
  readonly axis: Axis;
  readonly nowMs: number;
}): VNode {
  const { call, axis, nowMs } = properties;
  return (
    <li class="call">
      <div class="what">
        <a class="name" href={callAddress(call.id)}>
          {call.tool ?? "unknown tool"}
        </a>
        <span class="quiet">
          #{call.number} · {formatTime(call.receivedAtMs, nowMs)} ·{" "}
          {call.isOwn ? "from here" : "from an agent"}
        </span>
      </div>
      <PhaseBar segments={segmentsOf(call, axis, nowMs)} />
      <div class="end">
        <Outcome call={call} />
        <span class="number">{formatDuration(elapsedMs(call, nowMs))}</span>
        {call.outcome === null && <CancelButton call={call} />}
      </div>
    </li>
  );
}
