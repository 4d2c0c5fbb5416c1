/** A message in the flow of a page. */
import type { ComponentChildren, VNode } from "preact";

/** A `problem` is said to screen readers when it appears. */
export function Notice(properties: {
  readonly kind: "problem" | "warning" | "note";
  readonly children: ComponentChildren;
}): VNode {
  const { kind, children } = properties;
  return (
    <div class={`notice ${kind}`} role={kind === "problem" ? "alert" : undefined}>
      {children}
    </div>
  );
}
