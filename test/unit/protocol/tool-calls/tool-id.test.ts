/**
 * Ids of tools, and the patterns that allow them.
 */
import { describe, expect } from "vitest";
import {
  ToolScope,
  isToolPattern,
  parseToolId,
  shownId,
} from "../../../../worker/protocol/tool-calls/tool-id.ts";
import { isDeceptive } from "../../../../worker/support/text/deceptive.ts";
import { anyCharacter, fc, test } from "../../../support/properties/property.ts";

const part = fc.stringMatching(/^[A-Za-z0-9_.-]{1,128}$/);
const anyId = fc.oneof(
  part,
  fc.tuple(part, part).map((parts) => parts.join(":")),
);

describe("an id", () => {
  test.prop([part, part])("has a namespace and a name, or a name", (namespace, name) => {
    expect(parseToolId(`${namespace}:${name}`)).toEqual({ namespace, name });
    expect(parseToolId(name)).toEqual({ namespace: "", name });
  });

  test.each(["", ":", "a:", ":a", "a:b:c", "a b", "a\n", "é", "*", "a:*", "x".repeat(129)])(
    "is not %j",
    (text) => expect(parseToolId(text)).toBeUndefined(),
  );

  test.prop([fc.string({ unit: anyCharacter })])("of any text can be shown", (text) => {
    const shown = shownId(text);
    expect(isDeceptive(shown) || !shown.isWellFormed()).toBe(false);
    expect(shown.length).toBeLessThan(600);
  });
});

describe("a scope", () => {
  test.prop([anyId])("of * has every id", (id) => {
    expect(new ToolScope(["*"]).allows(id)).toBe(true);
    expect(new ToolScope([]).allows(id)).toBe(false);
  });

  test.prop([fc.array(anyId), anyId])("has the ids that it lists", (ids, id) => {
    expect(new ToolScope(ids).allows(id)).toBe(ids.includes(id));
  });

  test("has whole namespaces, and no parts of their names", () => {
    const scope = new ToolScope(["sales:*", "convert"]);
    const ids = ["sales:query", "convert", "sales", "sales.eu:query", "salesx:query", "x:convert"];
    expect(ids.map((id) => scope.allows(id))).toEqual([true, true, false, false, false, false]);
  });

  test("never has what is no id", () => {
    const scope = new ToolScope(["*", "sales:*"]);
    expect(["*", "sales:*", "", "sales:"].filter((id) => scope.allows(id))).toEqual([]);
  });

  test.each(["", "*:a", "a:b*", "**", "a:*:b", "a\n"])("refuses the pattern %j", (pattern) => {
    expect(isToolPattern(pattern)).toBe(false);
    expect(() => new ToolScope(["a", pattern])).toThrow(TypeError);
  });
});
