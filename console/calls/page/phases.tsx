/** How long each phase of a call took. */
import type { VNode } from "preact";
import type { CallView } from "../../../worker/console/api.ts";
import { formatDuration } from "../../format/format.ts";
import { useNow } from "../../state/use-now.ts";
import { Table } from "../../ui/table.tsx";
import { PhaseBar, Swatch } from "../phase-bar.tsx";
import { axisOf, phaseMs, segmentsOf } from "../timeline.ts";

export function Phases({ call }: { readonly call: CallView }): VNode {
  const nowMs = useNow(call.outcome === null);
  const axis = axisOf([call], nowMs, false);
  return (
    <section class="card stack tight" aria-labelledby="phases-title">
      <h2 id="phases-title">Phases</h2>
      <PhaseBar segments={segmentsOf(call, axis, nowMs)} />
      <Table
        caption="Phases of the call"
        isCaptionHidden
        columns={["Phase", "After", "Duration"]}
        numeric={[1, 2]}
        rows={call.phases.map((phase) => [
          <>
            <Swatch step={phase.step} /> {phase.step}
          </>,
          formatDuration(phase.startMs),
          `${formatDuration(phaseMs(call, phase, nowMs))}${phase.endMs === null ? " …" : ""}`,
        ])}
      />
    </section>
  );
}
