/** How a call stands. */
import type { VNode } from "preact";
import type { CallView } from "../../worker/console/api.ts";
import { Badge } from "../ui/badge.tsx";
import { outcomeClass } from "./filter.ts";

const kinds = { ok: "good", failed: "bad", running: "busy" } as const;

export function Outcome({ call }: { readonly call: CallView }): VNode {
  return <Badge kind={kinds[outcomeClass(call)]}>{call.outcome ?? "running"}</Badge>;
}
