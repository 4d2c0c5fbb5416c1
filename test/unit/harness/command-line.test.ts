/**
 * Small pure parts of the command line: values of options, arguments of artifacts, text for people.
 */
import { anyCharacter, fc, test as property } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { byRequestKey, withFilenames } from "../../../harness/invoke/call-inputs.ts";
import { explainSilence } from "../../../harness/dev-broker/embedded-broker.ts";
import {
  collectAssignment,
  parseArtifactReference,
  parseJsonObject,
  parsePort,
  parseSeconds,
} from "../../../harness/options/option-values.ts";
import { printable } from "../../../harness/invoke/screen.ts";

describe("numbers", () => {
  test("are whole, in decimal digits, and in their range", () => {
    expect(parsePort("0")).toBe(0);
    expect(parsePort("65535")).toBe(65535);
    expect(parseSeconds("86400")).toBe(86400);
    for (const text of ["", "-1", "1.5", "1e3", "0x10", " 1", "65536", "9999999999999"]) {
      expect(() => parsePort(text)).toThrow(/Accepted: a port/);
    }
    for (const text of ["0", "86401"]) expect(() => parseSeconds(text)).toThrow(/Accepted: whole/);
  });
});

describe("a JSON object", () => {
  test("is an object and nothing else", () => {
    expect(parseJsonObject('{"a": [1]}')).toEqual({ a: [1] });
    for (const text of ["[1]", '"x"', "null", "1", "", "{", "{'a': 1}"]) {
      expect(() => parseJsonObject(text)).toThrow(/Accepted: a JSON object/);
    }
  });
});

describe("an assignment", () => {
  test("ends its parameter at the first equals sign", () => {
    expect(collectAssignment("p=a=b:1", [])).toEqual([
      { parameter: "p", isElement: false, text: "a=b:1" },
    ]);
  });

  test("is added to those before it", () => {
    const before = [{ parameter: "p", isElement: false, text: "a" }];
    expect(collectAssignment("p[]=b", before)).toEqual([
      ...before,
      { parameter: "p", isElement: true, text: "b" },
    ]);
  });

  test.for(["", "p", "=f", "p=", "p[0]=f", "[]=f", "p[][]=f", "p[]="])(
    '"%s" is refused',
    (text) => {
      expect(() => collectAssignment(text, [])).toThrow(/PARAM=FILE/);
    },
  );
});

describe("a reference to an artifact", () => {
  test.for([
    ["report.csv", "report.csv", undefined],
    ["report.csv@0", "report.csv", 0],
    ["user:a@b.csv@12", "user:a@b.csv", 12],
    ["a@b.csv", "a@b.csv", undefined],
    ["@3", "@3", undefined],
    ["a@-1", "a@-1", undefined],
  ] as const)("%s is %s in version %s", ([text, filename, version]) => {
    expect(parseArtifactReference(text)).toEqual({ filename, version });
  });

  test("has a name", () => {
    expect(() => parseArtifactReference("")).toThrow(/It is empty/);
  });
});

describe("artifacts of a request", () => {
  test("have their parameter's name, or an index in a list", () => {
    const entries = [
      ["one", "a"],
      ["many", "b"],
      ["many", "c"],
      ["alone", "d"],
    ] as const;
    expect([...byRequestKey(entries, new Set(["many", "alone"]))]).toEqual([
      ["one", "a"],
      ["many[0]", "b"],
      ["many[1]", "c"],
      ["alone[0]", "d"],
    ]);
  });

  test("name themselves in the arguments, unless those do", () => {
    const file = (filename: string) => ({ filename });
    const files = [
      ["one", file("a")],
      ["many", file("b")],
      ["many", file("c")],
      ["given", file("d")],
      ["alone", file("e")],
    ] as const;
    const lists = new Set(["many", "alone"]);
    expect(withFilenames({ given: null, other: 1 }, files, lists)).toEqual({
      given: null,
      other: 1,
      one: "a",
      many: ["b", "c"],
      alone: ["e"],
    });
  });

  property.prop([fc.array(fc.tuple(fc.constantFrom("a", "b", "__proto__"), fc.string()))])(
    "are all there, under keys of their own",
    (entries) => {
      const names = entries.map(([name]) => name);
      const lists = new Set(names.filter((name, index) => names.indexOf(name) !== index));
      const keyed = byRequestKey(entries, lists);
      expect([...keyed.values()].sort()).toEqual(entries.map(([, value]) => value).sort());
      const files = entries.map(([name, filename]) => [name, { filename }] as const);
      const args = withFilenames({}, files, lists);
      expect(Object.keys(args).sort()).toEqual([...new Set(names)].sort());
    },
  );
});

describe("text of others", () => {
  test("keeps newlines, tabs, and every character that is seen", () => {
    const text = "a\nb\tc é 年 👩‍💻";
    expect(printable(text)).toBe(text);
  });

  property.prop([fc.string({ unit: anyCharacter })])("controls nothing", (text) => {
    expect(printable(text)).not.toMatch(/[^\P{Cc}\n\t]|\p{Bidi_Control}/u);
  });

  property.prop([fc.json()])("stays the same JSON", (json) => {
    expect(JSON.parse(printable(json))).toEqual(JSON.parse(json));
  });
});

describe("why nobody answered", () => {
  const topic = "ns/a2a/v1/sam_remote_tool/invoke/echo_tool";
  const invoke = (namespace: string, tool: string) =>
    `${namespace}/a2a/v1/sam_remote_tool/invoke/${tool}`;

  test("nobody subscribed to anything", () => {
    expect(explainSilence(topic, [])).toBe("No client subscribed to anything.");
  });

  test("the tool is served in another namespace", () => {
    const patterns = [invoke("NS", "echo_tool"), "NS/a2a/v1/discovery/>"];
    const text = explainSilence(topic, [{ clientId: "w", patterns }]);
    expect(text).toContain(`  w\n    ${patterns.join("\n    ")}`);
    expect(text).toContain('serves echo_tool in namespace "NS", and this call was for "ns"');
  });

  test("the worker serves other tools", () => {
    const patterns = [invoke("ns", "a"), invoke("ns", "b")];
    const text = explainSilence(topic, [{ clientId: null, patterns }]);
    expect(text).toContain("The worker's manifest has no echo_tool; it serves a, b.");
  });

  test("is not known when somebody does serve the tool", () => {
    const patterns = [topic, invoke("other", "echo_tool")];
    const text = explainSilence(topic, [{ clientId: "w", patterns }]);
    expect(text).not.toContain("namespace");
  });

  test("is told of a few subscriptions of those who have many", () => {
    const patterns = Array.from({ length: 25 }, (_, index) => `topic/${index}`);
    const text = explainSilence(topic, [{ clientId: "w", patterns }]);
    expect(text).toContain("topic/19\n    and 5 more");
    expect(text).not.toContain("topic/20");
  });
});
