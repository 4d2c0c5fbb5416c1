import { describe, expect, test } from "vitest";
import { deadRules } from "../../../worker/manifest/fields/dead-rules.ts";
import {
  type NetworkRule,
  networkField,
  toNetwork,
} from "../../../worker/protocol/network-rules.ts";
import { formatProblem } from "../../../worker/support/file-problems.ts";
import { parse } from "./fixtures.ts";

function rulesOf(...allow: readonly unknown[]): readonly NetworkRule[] {
  const network = toNetwork(networkField.parse({ allow }));
  if (typeof network === "string") throw new Error(network);
  return network.lists[0]!;
}

function dead(...allow: readonly unknown[]): readonly number[] {
  return deadRules(rulesOf(...allow)).map(({ index }) => index);
}

describe("a rule is dead", () => {
  test.each<[narrow: unknown, wide: unknown]>([
    ["a.example.org", "*.example.org"],
    ["a.b.example.org", ".example.org"],
    ["example.org", ".example.org"],
    ["*.example.org", ".example.org"],
    ["a.example.org", ".a.example.org"],
    ["192.0.2.0/24", "192.0.0.0/16"],
    ["*.a.example.org", "*.example.org"],
    [".a.example.org", "*.example.org"],
    ["a.example.org:443", "a.example.org:443,8443"],
    ["192.0.2.10", "192.0.2.0/24"],
    ["192.0.2.128/25", "192.0.2.0/24"],
    ["a.example.org", { host: "a.example.org", private: true }],
    ["a.example.org", { host: "*.example.org", sni: "any" }],
  ])("%j beside %j, in either order", (narrow, wide) => {
    expect(dead(narrow, wide)).toEqual([0]);
    expect(dead(wide, narrow)).toEqual([1]);
  });

  test("that is a repetition, and not the first one", () => {
    expect(dead("a.example.org", "A.example.org.:443", "a.example.org")).toEqual([1, 2]);
    expect(dead("192.0.2.7/24", "192.0.2.0/24")).toEqual([1]);
  });
});

test.each<[unknown, unknown]>([
  ["example.org", "*.example.org"],
  ["badexample.org", ".example.org"],
  ["*.a.example.org", "a.example.org"],
  ["a.example.org:443,8443", "*.example.org"],
  ["192.0.3.10", "192.0.2.0/24"],
  [{ host: "a.example.org", private: true }, "*.example.org"],
  [{ host: "a.example.org", sni: "any" }, "*.example.org"],
])("%j and %j both count", (one, other) => {
  expect(dead(one, other)).toEqual([]);
  expect(dead(other, one)).toEqual([]);
});

test("two rules that differ in an option that may narrow one of them both count", () => {
  const [narrow, wide] = rulesOf("a.example.org", "*.example.org");
  const option = { narrowed: true };
  expect(deadRules([narrow!, { ...wide!, ...option }])).toEqual([]);
  expect(deadRules([{ ...narrow!, ...option }, wide!])).toEqual([]);
});

test("a manifest with a dead rule is served, with a warning at the rule", () => {
  const { manifest, warnings } = parse(`version: 1
tools:
  a:
    module: m
    class_name: C
    tools: [one, two]
    network:
      allow:
        - "*.example.org:443,8443"
        - b.example.com
        - a.example.org:443
        - { host: b.example.com, private: true }
        - { host: localhost, ports: [5432, 80], private: true }
  b:
    module: m
    function: f
    network:
      public: true
      allow:
        - { host: db.internal, private: true }
        - api.example.com:80
        - api.example.com:22
`);
  expect([...manifest.tools.keys()]).toEqual(["one", "two", "b"]);
  expect(warnings.map((warning) => formatProblem("m.yaml", warning))).toEqual([
    'm.yaml:10:11: tool "a": network.allow[1]: has no effect beside { host: b.example.com, private: true }',
    'm.yaml:11:11: tool "a": network.allow[2]: has no effect beside *.example.org:443,8443',
    'm.yaml:13:11: tool "a": network.allow[4]: localhost is the sandbox itself; for the worker\'s host write { host: 127.0.0.1, ports: [5432, 80], private: true }',
    'm.yaml:21:11: tool "b": network.allow[1]: has no effect beside public',
  ]);
});
