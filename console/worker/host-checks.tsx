/** The doctor's findings on the host, of each backend. */
import type { VNode } from "preact";
import type { HostView } from "../../worker/console/api.ts";
import { Badge, type BadgeKind } from "../ui/badge.tsx";

type Check = HostView["checks"][number];

export function HostChecks({ hosts }: { readonly hosts: readonly HostView[] }): VNode {
  return (
    <>
      {hosts.map((host) => (
        <section key={host.backend} class="card stack tight" aria-label={`Host: ${host.backend}`}>
          <h2>
            Host: <span class="name">{host.backend}</span>
          </h2>
          <p class="meta">{host.technology}</p>
          <ul class="checks">
            {host.checks.map((check) => (
              <li key={check.name}>
                <div class="spread">
                  <strong>{check.name}</strong>
                  <Badge kind={kindOf(check)}>{check.state}</Badge>
                </div>
                <p class="lines">{check.finding}</p>
                {check.remedy !== null && <p class="lines remedy">{check.remedy}</p>}
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

function kindOf({ state, required }: Check): BadgeKind {
  if (state === "held") return "good";
  return state === "missing" && required ? "bad" : "warning";
}
