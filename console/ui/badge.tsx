/** A short state in words, with a sign that does not need its colour. */
import type { ComponentChildren, VNode } from "preact";

export type BadgeKind = "good" | "bad" | "busy" | "warning" | "plain";

const signs: Readonly<Record<BadgeKind, string>> = {
  good: "✓",
  bad: "✕",
  busy: "●",
  warning: "!",
  plain: "",
};

export function Badge(properties: {
  readonly kind: BadgeKind;
  readonly children: ComponentChildren;
}): VNode {
  const { kind, children } = properties;
  return (
    <span class={`badge ${kind}`}>
      {signs[kind] !== "" && <span aria-hidden="true">{signs[kind]}</span>}
      <span>{children}</span>
    </span>
  );
}
