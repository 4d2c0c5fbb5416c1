/**
 * `harness network explain`: what tools of a manifest may reach.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, afterAll, expect, test } from "vitest";
import { CliRun } from "../cli-process.ts";

const manifest = `
version: 1
credentials:
  other: { header: "X-Key: {value}", value: "env:OTHER_KEY", hosts: [api.other.com] }
tools:
  closed: { module: m, function: f, network: none }
  open: { module: m, function: f, network: host }
  silent: { module: m, function: f, sandbox_profile: restrictive }
  listed:
    module: m
    function: f
    network:
      allow:
        - api.example.com
        - "*.example.org:443,8443"
        - .example.net
        - { host: db.internal, ports: [5432], private: true }
        - { host: any.example.com, sni: any }
        - 192.0.2.10:22
        - 198.51.100.0/24
        - { host: api.other.com, methods: [GET, HEAD], paths: ["/v1/*"], credential: other }
      max_connections: 16
  both: { module: m, function: f, sandbox_profile: web, network: { allow: [a.example.com, b.example.org] } }
  within: { module: m, function: f, sandbox_profile: web, network: { allow: [a.example.com] } }
  bare: { module: m, function: f, sandbox_profile: bare, network: none }
  default: { module: m, function: f }
  wide: { module: m, function: f, network: { public: true, ports: [22], allow: [a.example.com] } }
  unserved: { module: m, function: f, sandbox_profile: bare, network: { allow: [a.example.com] } }
`;

const profiles = `
version: 1
profiles:
  web: { extends: standard, network: { allow: ["*.example.com"], max_connections: 8 } }
  bare: { extends: permissive, backend: host }
`;

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "str-explain-test-"));
  await writeFile(join(directory, "m.yaml"), manifest);
  await writeFile(join(directory, "p.yaml"), profiles);
});
afterAll(() => rm(directory, { recursive: true }));

async function explained(
  name: string | undefined,
  more: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
) {
  const files = ["--manifest", join(directory, "m.yaml"), "--profiles", join(directory, "p.yaml")];
  const named = name === undefined ? [] : [name];
  await using cli = new CliRun(["network", "explain", ...named, ...files, ...more], environment);
  return await cli.finished;
}

const never = [
  expect.stringMatching(/^Never reached: the worker's broker, its object store/),
  expect.stringMatching(/^Only where an entry says so: private, loopback,.* metadata/),
  expect.stringMatching(/UDP/),
];

test.each<[tool: string, lines: readonly unknown[]]>([
  ["closed", [expect.stringMatching(/^closed reaches nothing, by its manifest entry: /)]],
  ["silent", [expect.stringMatching(/^silent reaches nothing, by the profile restrictive: /)]],
  [
    "open",
    [expect.stringMatching(/^open reaches all .*, by its manifest entry: .* the broker\.$/)],
  ],
  [
    "listed",
    [
      "listed reaches these hosts and nothing else, by its manifest entry:",
      "  api.example.com on port 443",
      "  every name below example.org on ports 443, 8443",
      "  example.net and every name below it on port 443",
      "  db.internal on port 5432, also at addresses that are not public",
      "  any.example.com on port 443, with any name in TLS, or without TLS",
      "  192.0.2.10 on port 22",
      "  addresses of 198.51.100.0/24 on port 443",
      "  api.other.com on port 443, requests GET, HEAD for /v1/* with the credential other, opened by the worker",
      "At most 16 connections at once.",
      ...never,
      'A worker with these variables does not serve it: the value of its credential "other" is not allowed by CREDENTIAL_SOURCES: add env:OTHER_KEY to it.',
    ],
  ],
  [
    "both",
    [
      "both reaches these hosts and nothing else, by the profile web and its manifest entry:",
      "Of the profile web:",
      "  every name below example.com on port 443",
      "Of its manifest entry:",
      "  a.example.com on port 443",
      "  b.example.org on port 443",
      "A connection needs an entry of each list.",
      "At most 8 connections at once.",
      ...never,
    ],
  ],
  [
    "within",
    [
      "within reaches these hosts and nothing else, by the profile web and its manifest entry:",
      "  a.example.com on port 443",
      "At most 8 connections at once.",
      ...never,
    ],
  ],
  [
    "default",
    [
      "default reaches these hosts and nothing else, by the profile standard:",
      "  every public host on ports 80, 443",
      "SANDBOX_DEFAULT_NETWORK decides that.",
      "At most 64 connections at once.",
      ...never,
    ],
  ],
  [
    "wide",
    [
      "wide reaches these hosts and nothing else, by its manifest entry:",
      "  every public host on port 22",
      "  a.example.com on port 443",
      "At most 64 connections at once.",
      ...never,
    ],
  ],
  [
    "bare",
    [expect.stringMatching(/^bare reaches all that this host reaches, by the profile bare:/)],
  ],
  ["unserved", [expect.stringMatching(/^unserved is not served: the profile bare /)]],
])("says what %s reaches", async (tool, lines) => {
  const { stdout, stderr, exitCode } = await explained(tool);
  expect([stderr, exitCode]).toEqual(["", 0]);
  expect(stdout.split("\n").slice(0, -1)).toEqual(lines);
});

test("says which variables decide", async () => {
  const wide = await explained("default", [], { SANDBOX_DEFAULT_NETWORK: "host" });
  expect(wide.stdout.split("\n").slice(0, -1)).toEqual([
    expect.stringMatching(/^default reaches all that this host reaches, by the profile standard/),
    "SANDBOX_DEFAULT_NETWORK decides that.",
  ]);
  const replaced = await explained("open", [], { SANDBOX_HOST_NETWORK: "public" });
  expect(replaced.stdout.split("\n").slice(0, 3)).toEqual([
    "open reaches these hosts and nothing else, by its manifest entry:",
    "  every public host on ports 80, 443",
    "SANDBOX_HOST_NETWORK decides that.",
  ]);
  const listed = await explained("listed", [], { SANDBOX_DEFAULT_NETWORK: "host" });
  expect(listed.stdout).not.toContain("SANDBOX_");
});

test("says whether CREDENTIAL_SOURCES allows the credentials of a tool", async () => {
  const allowed = await explained("listed", [], { CREDENTIAL_SOURCES: "env:OTHER_KEY" });
  expect(allowed.stdout).toContain("with the credential other");
  expect(allowed.stdout).not.toContain("does not serve it");
  const wrong = await explained("listed", [], { CREDENTIAL_SOURCES: "OTHER_KEY" });
  expect(wrong).toMatchObject({ exitCode: 2, stdout: "" });
  expect(wrong.stderr).toContain("CREDENTIAL_SOURCES");
});

test("prints every tool as a line of JSON", async () => {
  const { stdout, exitCode } = await explained(undefined, ["--json"]);
  expect(exitCode).toBe(0);
  const rows = stdout.split("\n").slice(0, -1);
  const { rules } = (JSON.parse(rows[3]!) as { lists: { rules: unknown[] }[] }).lists[0]!;
  expect(rules.at(-1)).toMatchObject({ methods: ["GET", "HEAD"], credential: "other" });
  expect(stdout).not.toContain("OTHER_KEY");
  const rule = { private: false, sni: "exact", ports: [443] };
  expect(rows.map((row): unknown => JSON.parse(row))).toMatchObject([
    { tool: "closed", profile: "standard", network: "none", from: ["tool"] },
    { tool: "open", network: "host", from: ["tool"] },
    { tool: "silent", profile: "restrictive", network: "none", from: ["profile"] },
    {
      ...{ tool: "listed", network: "lists", from: ["tool"], max_connections: 16 },
      not_served: 'the value of its credential "other" is not allowed by CREDENTIAL_SOURCES',
    },
    {
      ...{ tool: "both", profile: "web", network: "lists", from: ["profile", "tool"] },
      lists: [
        { from: "profile", rules: [{ ...rule, entry: "*.example.com" }] },
        {
          from: "tool",
          rules: [
            { ...rule, entry: "a.example.com", host: { kind: "name", name: "a.example.com" } },
            { entry: "b.example.org" },
          ],
        },
      ],
      max_connections: 8,
    },
    { tool: "within", from: ["profile", "tool"], lists: [{ from: "tool" }] },
    { tool: "bare", network: "host", from: ["profile"] },
    { tool: "default", network: "lists", from: ["profile"], variable: "SANDBOX_DEFAULT_NETWORK" },
    { tool: "wide", network: "lists", from: ["tool"] },
    { tool: "unserved", network: "unserved" },
  ]);
});

test("refuses a tool, a manifest and a profile that do not exist", async () => {
  const missing = await explained("missing");
  expect(missing).toMatchObject({ exitCode: 2, stdout: "" });
  expect(missing.stderr).toContain('m.yaml has no tool "missing"; its tools: closed, open,');
  await using none = new CliRun(["network", "explain", "--manifest", join(directory, "no.yaml")]);
  expect(await none.finished).toMatchObject({ exitCode: 2 });
  const file = ["--manifest", join(directory, "m.yaml")];
  await using other = new CliRun(["network", "explain", ...file, "--profiles", file[1]!]);
  expect(await other.finished).toMatchObject({ exitCode: 2 });
});
