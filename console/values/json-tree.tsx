/**
 * A JSON value as a tree of disclosures, which the keyboard opens and closes. Children are rendered
 * when they are shown, so that a large value costs what is open.
 */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { JsonValue } from "../../worker/console/api.ts";
import { formatCount } from "../format/format.ts";
import { isMembers } from "./json.ts";

/** Children of a level that are shown at first, and with each further step. */
const childrenStep = 200;
/** Characters of a text that are shown at first. */
const maxTextLength = 1_000;

export function JsonTree(properties: { readonly value: JsonValue; readonly label: string }): VNode {
  return (
    <div class="tree">
      <Node name={properties.label} value={properties.value} isOpen />
    </div>
  );
}

function Node(properties: {
  readonly name: string;
  readonly value: JsonValue;
  readonly isOpen?: boolean;
}): VNode {
  const { name, value } = properties;
  const [isOpen, setIsOpen] = useState(properties.isOpen ?? false);
  if (!Array.isArray(value) && !isMembers(value)) {
    return (
      <div class="leaf">
        <span class="key">{name}</span> <Leaf value={value} />
      </div>
    );
  }
  const children = childrenOf(value);
  if (children.length === 0) {
    return (
      <div class="leaf">
        <span class="key">{name}</span>{" "}
        <span class="quiet">{Array.isArray(value) ? "[]" : "{}"}</span>
      </div>
    );
  }
  return (
    <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        <span class="key">{name}</span>{" "}
        <span class="quiet">{sizeText(value, children.length)}</span>
      </summary>
      {isOpen && <Children entries={children} />}
    </details>
  );
}

function Children({
  entries,
}: {
  readonly entries: readonly (readonly [string, JsonValue])[];
}): VNode {
  const [shown, setShown] = useState(childrenStep);
  return (
    <div class="children">
      {entries.slice(0, shown).map(([name, value]) => (
        <Node key={name} name={name} value={value} />
      ))}
      {entries.length > shown && (
        <button type="button" onClick={() => setShown(shown + childrenStep)}>
          {`Show ${Math.min(entries.length - shown, childrenStep)} more`}
        </button>
      )}
    </div>
  );
}

function Leaf({ value }: { readonly value: JsonValue }): VNode {
  const [isWhole, setIsWhole] = useState(false);
  if (typeof value !== "string") return <span class="literal">{JSON.stringify(value)}</span>;
  const isLong = value.length > maxTextLength && !isWhole;
  return (
    <>
      <span class="text">{JSON.stringify(isLong ? value.slice(0, maxTextLength) : value)}</span>
      {isLong && (
        <button type="button" onClick={() => setIsWhole(true)}>
          {`Show all ${value.length} characters`}
        </button>
      )}
    </>
  );
}

function childrenOf(value: JsonValue): readonly (readonly [string, JsonValue])[] {
  return Object.entries(value as Readonly<Record<string, JsonValue>>);
}

function sizeText(value: JsonValue, count: number): string {
  return Array.isArray(value) ? formatCount(count, "item") : formatCount(count, "member");
}
