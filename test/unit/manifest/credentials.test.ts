/**
 * Credentials of a manifest, and the rules that name them.
 */
import { describe, expect, test } from "vitest";
import { ManifestError } from "../../../worker/manifest/manifest.ts";
import { parseManifest } from "../../../worker/manifest/parse.ts";
import type { NetworkPolicy } from "../../../worker/protocol/network-rules.ts";
import { parse, profileNames } from "./fixtures.ts";

const secret = "sk-planted-secret";

/** A manifest with one credential and one rule, as flow maps. */
function manifest(credential: string, rule: string): string {
  return `credentials:
  other: ${credential}
tools:
  x: {module: m, function: f, network: {allow: [${rule}]}}
`;
}

function problemsOf(text: string, prefix = ""): readonly string[] {
  try {
    parseManifest(Buffer.from(text), { path: "m", profileNames, prefix });
  } catch (error) {
    expect(error).toBeInstanceOf(ManifestError);
    return (error as ManifestError).message.split("\n");
  }
  throw new Error(`parsed: ${text}`);
}

const fine =
  '{header: "Authorization: Bearer {value}", value: "env:OTHER", hosts: [a.example.com]}';
const rule = "{host: a.example.com, credential: other}";

describe("a credential", () => {
  test.each([
    [
      '{header: "x-api-key:{value}", value: "file:/run/secrets/o:x", hosts: [a.example.com]}',
      { kind: "header", header: "x-api-key", template: "{value}" },
      { kind: "file", name: "/run/secrets/o:x" },
    ],
    [
      "{basic: alice, value: env:OTHER, hosts: [a.example.com]}",
      { kind: "basic", user: "alice" },
      { kind: "env", name: "OTHER" },
    ],
    [
      "{query: api_key, value: env:OTHER, hosts: [a.example.com]}",
      { kind: "query", parameter: "api_key" },
      { kind: "env", name: "OTHER" },
    ],
    [
      "{placeholder: OTHER_TOKEN, value: env:OTHER, hosts: [a.example.com]}",
      { kind: "placeholder", variable: "OTHER_TOKEN" },
      { kind: "env", name: "OTHER" },
    ],
  ])("comes to the rule that names it: %s", (text, use, source) => {
    const parsed = parse(manifest(text, rule)).manifest.tools.get("x")!;
    const { lists } = parsed.network as NetworkPolicy;
    expect(lists[0]![0]!.requests?.credential).toEqual({
      ...{ name: "other", use, source },
      hosts: [{ kind: "name", name: "a.example.com" }],
    });
  });

  test.each([
    [fine.replace("env:OTHER", secret), /2:\d+: credentials\.other\.value: .*never the value/],
    [fine.replace("env:OTHER", "file:secret"), /credentials\.other\.value: .*absolute path/],
    [fine.replace("{value}", secret), /2:\d+: credentials\.other\.header: .*\{value\} in it once/],
    [fine.replace("{value}", "{value}{value}"), /\{value\} in it once/],
    [fine.replace("Bearer ", "Bearer\\r\\nX-Evil: "), /\{value\} in it once/],
    [fine.replace("Authorization", "Host"), /belongs to the connection/],
    [fine.replace("Authorization", "Transfer-Encoding"), /belongs to the connection/],
    [fine.replace("{header", "{basic: alice, header"), /one of header, basic, query, placeholder/],
    ["{value: env:OTHER, hosts: [a.example.com]}", /one of header, basic, query, placeholder/],
    ["{basic: 'a:b', value: env:OTHER, hosts: [a.example.com]}", /without colon/],
    ["{placeholder: NODE_OPTIONS, value: env:O, hosts: [a.example.com]}", /set by the sandbox/],
    [fine.replace("[a.example.com]", "[]"), /credentials\.other\.hosts: expected a list/],
    [fine.replace("[a.example.com]", "['*']"), /bare \*/],
    [fine.replace("[a.example.com]", "[192.0.2.1]"), /no certificate/],
    [fine.replace("hosts", "host"), /unknown key/],
    ["text", /expected a map/],
  ])("is refused without a word of its value: %s", (text, problem) => {
    const problems = problemsOf(manifest(text, rule)).join("\n");
    expect(problems).toMatch(problem);
    expect(problems).not.toContain(secret);
  });

  test("has a variable of its own, and is refused in a toolset", () => {
    const one = "{placeholder: TOKEN, value: env:O, hosts: [a.example.com]}";
    const text = `credentials:\n  a: ${one}\n  b: ${one}\ntools: {}\n`;
    expect(problemsOf(text)).toEqual([
      "m:3:20: credentials.b.placeholder: another credential has this variable",
    ]);
    expect(problemsOf(manifest(fine, rule), "set__").join("\n")).toMatch(
      /^m:1:1: credentials: allowed only in the worker's own manifest/,
    );
  });
});

describe("a rule with a credential", () => {
  test.each([
    ["a.example.com", "b.example.com", false],
    ["a.example.com", ".a.example.com", false],
    ["*.example.com", "b.example.com", true],
    ["*.example.com", "example.com", false],
    [".example.com", "example.com", true],
    ["*.example.com", "*.example.com", true],
    // A wildcard is covered by the same one only, so that both are read alike.
    [".example.com", "*.example.com", false],
    [".example.com", "*.a.example.com", false],
  ])("of hosts %s may be for %s: %s", (hosts, host, isCovered) => {
    const text = manifest(
      fine.replace("[a.example.com]", `["${hosts}"]`),
      `{host: "${host}", credential: other}`,
    );
    if (isCovered) expect(parse(text).manifest.tools.has("x")).toBe(true);
    else
      expect(problemsOf(text)).toEqual([
        expect.stringMatching(
          /^m:4:\d+: tool "x": network\.allow\[0\]\.credential: the credential may not be sent/,
        ),
      ]);
  });

  test.each([
    ["{host: a.example.com, credential: nope}", /credential: expected a credential, one of other/],
    ["{host: a.example.com, credential: other, ports: [80, 443]}", /ports: .*by TLS only/],
    ["{host: a.example.com, methods: [get]}", /methods\[0\]: expected a list of GET/],
    ["{host: a.example.com, methods: []}", /methods: expected a list of GET/],
    ["{host: a.example.com, paths: [v1]}", /paths\[0\]: expected a path/],
    ["{host: a.example.com, paths: ['/a/*/b']}", /paths\[0\]: expected a path/],
    ["{host: a.example.com, paths: ['/v1*']}", /paths\[0\]: expected a path/],
    ["{host: a.example.com, paths: ['/a/../b']}", /paths\[0\]: expected a path/],
    ["{host: a.example.com, paths: ['/a?x=1']}", /paths\[0\]: expected a path/],
    ["{host: a.example.com, paths: ['/a%2fb']}", /paths\[0\]: expected a path/],
    ["{host: a.example.com, paths: [/a], sni: any}", /sni: allowed only without paths/],
    ["{host: 192.0.2.1, methods: [GET]}", /methods: allowed only for a host with a name/],
    ["{host: 192.0.2.0/24, credential: other}", /credential: allowed only for a host with a name/],
  ])("is refused: %s", (text, problem) => {
    expect(problemsOf(manifest(fine, text)).join("\n")).toMatch(problem);
  });

  test("or with methods and paths keeps them", () => {
    const text = manifest(fine, "{host: a.example.com, methods: [GET, HEAD], paths: [/, '/v1/*']}");
    const { lists } = parse(text).manifest.tools.get("x")!.network as NetworkPolicy;
    expect(lists[0]![0]!.requests).toEqual({ methods: ["GET", "HEAD"], paths: ["/", "/v1/*"] });
  });
});
