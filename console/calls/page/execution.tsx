/** Where a call ran, what it used, and what was enforced by whom. */
import type { VNode } from "preact";
import type { CallView } from "../../../worker/console/api.ts";
import { formatBytes, formatDuration } from "../../format/format.ts";
import { Facts } from "../../ui/facts.tsx";
import { LimitsTable, Unenforced } from "../../ui/limits.tsx";

export function Execution({ call }: { readonly call: CallView }): VNode {
  return (
    <section class="card stack" aria-labelledby="execution-title">
      <h2 id="execution-title">Execution</h2>
      <Facts
        facts={{
          Profile: call.profile,
          Backend: call.backend,
          Start: call.start,
          Queue: call.queue,
          "CPU time": call.cpuMs === null ? null : formatDuration(call.cpuMs),
          "Peak memory": call.peakMemoryBytes === null ? null : formatBytes(call.peakMemoryBytes),
          "Limit reached": call.limitReached,
          Deliveries: call.deliveryCount > 1 ? call.deliveryCount : null,
          Settlement: call.settlement,
          "Correlation id": code(call.correlationId),
          "Trace id": code(call.traceId),
        }}
      />
      {call.limits.length > 0 && <LimitsTable limits={call.limits} caption="Limits of the call" />}
      <Unenforced names={call.unenforced} />
    </section>
  );
}

function code(text: string | null): VNode | null {
  return text === null ? null : <code>{text}</code>;
}
