/** Limits, and who enforces them. */
import type { VNode } from "preact";
import type { LimitView } from "../../worker/console/api.ts";
import { asWords, formatBound } from "../format/format.ts";
import { Badge } from "./badge.tsx";
import { Notice } from "./notice.tsx";
import { Table } from "./table.tsx";

export function LimitsTable(properties: {
  readonly limits: readonly LimitView[];
  readonly caption: string;
}): VNode {
  const { limits, caption } = properties;
  return (
    <Table
      caption={caption}
      columns={["Limit", "Bound", "Enforced by"]}
      numeric={[1]}
      rows={limits.map(({ limit, bound, unit, by }) => [
        asWords(limit),
        formatBound(bound, unit),
        by === "none" ? <Badge kind="warning">not enforced</Badge> : by,
      ])}
    />
  );
}

/** Protections that the host lacks; nothing where it has all. */
export function Unenforced({ names }: { readonly names: readonly string[] }): VNode | null {
  if (names.length === 0) return null;
  return (
    <Notice kind="warning">
      This host does not enforce: <span class="name">{names.map(asWords).join(", ")}</span>
    </Notice>
  );
}
