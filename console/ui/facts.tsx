/** Names and values beside each other; values that are null are left out. */
import type { ComponentChildren, VNode } from "preact";

export function Facts(properties: {
  readonly facts: Readonly<Record<string, ComponentChildren>>;
}): VNode {
  const given = Object.entries(properties.facts).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  return (
    <dl class="facts">
      {given.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
