/**
 * Templates of Node and their children: what they share, and what makes a module unfit.
 */
import { fileURLToPath } from "node:url";
import { type TestContext, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { isFilteredArch } from "../../../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import { SandboxError, type Template } from "../../../../worker/sandbox/sandbox.ts";
import { type Draw, type Draws, alike } from "../../../support/sandboxes/draws.ts";
import {
  type TemplateHostOptions,
  templateHosts,
} from "../../../support/sandboxes/template-host.ts";
import { never } from "../../sandbox/sandbox-host.ts";

const openTemplateHost = templateHosts();
const fixtures = fileURLToPath(new URL("../../../fixtures/template/", import.meta.url));
const MiB = 1024 * 1024;

/** Asks a server of its own, which tells the ids of the questions, and knows no name. */
const asksForNames = `
import { createSocket } from "node:dgram";
import { once } from "node:events";
import dns, { promises } from "node:dns";
dns.setServers(["127.0.0.1:5353"]);
export async function ask() {
  const ids = [];
  const server = createSocket("udp4").bind(5353, "127.0.0.1");
  server.on("message", (question, { port, address }) => {
    ids.push(question.readUInt16BE(0));
    question.writeUInt16BE(0x8183, 2);
    server.send(question, port, address);
  });
  await once(server, "listening");
  for (let count = 0; count < 2; count++) await promises.resolve4("a.test").catch(() => undefined);
  server.close();
  return { ids };
}
`;

const openHost = (
  context: TestContext,
  source: string,
  options: Partial<TemplateHostOptions> = {},
) => openTemplateHost(context, { runtime: "node", files: { "tool.mjs": source }, ...options });

async function open(
  context: TestContext,
  source: string,
  options: Partial<TemplateHostOptions> = {},
) {
  const host = await openHost(context, source, options);
  const template = await host.openTemplate();
  onTestFinished(() => template[Symbol.asyncDispose]());
  return { host, template };
}

beforeEach((context) =>
  context.skip(!isFilteredArch(process.arch), `there are no templates on ${process.arch}`),
);

describe("a template of Node", () => {
  test("loads its module once, and each child answers one call", async (context) => {
    const source =
      "const loads = [1];\nexport const run = () => ({ loads: (loads.push(2), loads) });\n";
    const { host, template } = await open(context, source);
    for (let count = 0; count < 3; count++)
      expect(await host.call(template, "run")).toMatchObject({
        report: { started: true, exitCode: 0, exceeded: undefined },
        result: { loads: [1, 2] },
      });
  });

  test("runs a program in each child where it has no module", async (context) => {
    const { host, template } = await open(context, "", { module: "" });
    for (const given of [1, 2])
      expect(await host.call(template, "inputs.given + 1", { given })).toMatchObject({
        report: { exitCode: 0 },
        result: { value: given + 1 },
      });
  });

  test("makes children of at most 2 MB", async (context) => {
    const { template } = await open(context, "export const run = () => 1;\n");
    await using parked = await template.park(never);
    expect(parked.privateBytes).toBeGreaterThan(0);
    expect(parked.privateBytes).toBeLessThan(2 * MiB);
  });

  test("has its children's first processes give back its memory, and interrupt nobody", async (context) => {
    const source = `
      import { readFileSync } from "node:fs";
      import { setTimeout as sleep } from "node:timers/promises";
      const held = Buffer.alloc(32 << 20, 1);
      const kilobytes = (id) => Number(/RssAnon:\\s+(\\d+)/.exec(readFileSync("/proc/" + id + "/status"))[1]);
      export async function run() {
        for (let looks = 0; kilobytes(1) >= 4096 && looks < 5000; looks++) await sleep(1);
        const policy = Number(readFileSync("/proc/1/stat", "latin1").split(") ")[1].split(" ")[38]);
        return { first: kilobytes(1), own: kilobytes("self"), held: held.length, policy };
      }
    `;
    const { host, template } = await open(context, source);
    type FirstProcess = Readonly<Record<"first" | "own" | "policy", number>>;
    const { result } = await host.call<FirstProcess>(template, "run");
    expect(result.own).toBeGreaterThan(32 * 1024);
    expect(result.first).toBeLessThan(4096);
    expect(result.policy).toBe(3);
  });

  test("has nothing open in its children that a sandbox of its own has not", async (context) => {
    const source = `
      import { readdirSync, readlinkSync } from "node:fs";
      export const run = () => ({
        open: readdirSync("/proc/self/fd").flatMap((name) => {
          try { return readlinkSync("/proc/self/fd/" + name).replace(/\\d+/, ""); } catch { return []; }
        }).sort(),
      });
    `;
    const { host, template } = await open(context, source);
    const inChild = await host.call<{ open: string[] }>(template, "run");
    const alone = await host.call<{ open: string[] }>(undefined, "run");
    const channels = ["pipe:[]", "socket:[]"];
    const others = (open: readonly string[]) => open.filter((each) => !channels.includes(each));
    expect(others(inChild.result.open)).toEqual(others(alone.result.open));
  });

  test("makes children of a module that has changed what the runner can do without", async (context) => {
    const source =
      'Array.from = () => { throw new Error("none"); };\nexport const run = () => ({ fine: true });\n';
    const { host, template } = await open(context, source);
    expect((await host.call(template, "run")).result).toEqual({ fine: true });
  });

  const draws = async (
    context: TestContext,
    rounds: number,
    options: Partial<TemplateHostOptions> = {},
  ): Promise<void> => {
    const module = "generators.mjs";
    const { host, template } = await open(context, "", { module, toolsFrom: fixtures, ...options });
    const drawn: Draw[] = [];
    for (let round = 0; round < rounds; round++) {
      const calls = Array.from({ length: 3 }, () => host.call<Draws>(template, "tell"));
      const answers = await Promise.all(calls);
      expect(answers.map(({ error }) => error)).toEqual(answers.map(() => undefined));
      const results = answers.map(({ result }) => result);
      if (round === 0) drawn.push(results[0]!.imported);
      drawn.push(...results.map((each) => each.drawn));
    }
    expect(alike(drawn.slice(1))).toEqual({});
    expect(alike(drawn)).toEqual({});
  };
  test(
    "has no two of 6 children draw alike from any generator that its import has drawn from",
    { tags: "promise-W1" },
    (context) => draws(context, 2),
  );

  test("has children draw differently where its import has drawn nothing", async (context) => {
    const source = "export const run = () => ({ drawn: Math.random(), name: Math.random.name });\n";
    const { host, template } = await open(context, source);
    const call = () => host.call<{ drawn: number; name: string }>(template, "run");
    const [first, second] = [(await call()).result, (await call()).result];
    expect(first.name).toBe("random");
    expect(first.drawn).not.toBe(second.drawn);
  });

  test(
    "has children ask for names by ids of their own, where the import has said whom",
    { tags: "promise-W1" },
    async (context) => {
      const { host, template } = await open(context, asksForNames);
      const ask = async () => (await host.call<{ ids: number[] }>(template, "ask")).result;
      const [first, second] = [await ask(), await ask()];
      expect(first).toEqual({ ids: [expect.any(Number), expect.any(Number)] });
      expect(second).toEqual({ ids: [expect.any(Number), expect.any(Number)] });
      expect(second).not.toEqual(first);
    },
  );
});

/** What it answers to each part of Node that it uses, in a child and in a sandbox of its own. */
const usesNode = async (context: TestContext, options: Partial<TemplateHostOptions> = {}) => {
  const module = "works.mjs";
  const { host, template } = await open(context, "", { module, toolsFrom: fixtures, ...options });
  const inChild = await host.call(template, "works");
  expect(inChild).toEqual({ ...(await host.call(undefined, "works")), report: inChild.report });
  expect(inChild).toMatchObject({ report: { exitCode: 0 }, result: { timers: "on" } });
};

test("a child can use every part of Node", { timeout: 60_000 }, (context) => usesNode(context));

test(
  "a child can use threads, or the module is unfit for a template",
  { tags: "full" },
  async (context) => {
    const module = "threads.mjs";
    const host = await openHost(context, "", { module, toolsFrom: fixtures });
    const opened = await host.openTemplate().catch((error: unknown) => error);
    if (opened instanceof SandboxError) {
      expect(opened).toMatchObject({
        isUnfit: true,
        message: expect.stringMatching(/a fork of Node/),
      });
      return;
    }
    await using template = opened as Template;
    const answer = await host.call(template, "threads");
    expect(answer).toMatchObject({ result: { made: 5_000_000, status: 0 } });
  },
);

const usualEndings = ["throws", "exits", "is killed"];
const otherEndings = [
  "runs out of memory",
  "aborts",
  "throws later",
  "throws in its listener",
  "never ends",
];
const endsAsCold = async (how: string, context: TestContext): Promise<void> => {
  const limits = { memoryBytes: 128 * MiB };
  const options = { module: "works.mjs", toolsFrom: fixtures, limits };
  const { host, template } = await open(context, "", options);
  const [child, cold] = [
    await host.call(template, "end", { how }),
    await host.call(undefined, "end", { how }),
  ];
  const seen = ({ report, error }: typeof child) => ({
    error,
    exitCode: report.exitCode,
    signal: report.signal,
    exceeded: report.exceeded?.limit,
  });
  expect(seen(child)).toEqual(seen(cold));
};
const asCold = "a child %s as a sandbox of its own does";
test.for(usualEndings)(asCold, endsAsCold);
test.for(otherEndings)(asCold, { tags: "full" }, endsAsCold);

describe("a module is unfit for a template of Node that", () => {
  type UnfitCase = readonly [how: string, source: string, reason: string];

  const usual: readonly UnfitCase[] = [
    [
      "starts a thread",
      'import { Worker } from "node:worker_threads";\nnew Worker("setInterval(() => 0, 1e6)", { eval: true }).unref();',
      "threads: ",
    ],
    [
      "leaves a process running",
      'import { spawn } from "node:child_process";\nspawn("sleep", ["1000"], { stdio: "ignore" }).unref();',
      "1 processes",
    ],
    [
      "leaves a file open",
      'import { openSync } from "node:fs";\nopenSync("/usr/bin/env");',
      "/usr/bin/env open",
    ],
    ["cannot be imported", "throw new Error('no')", "Error: no"],
    ["leaves a timer", "setInterval(() => 0, 1e6);", "Timeout"],
  ];
  const withGenerators: readonly UnfitCase[] = [
    [
      "keeps a stock of random bytes",
      'import { randomFillSync } from "node:crypto";\nrandomFillSync(new Uint8Array(256));',
      "256 random bytes",
    ],
    [
      "has made a context",
      'import { createContext } from "node:vm";\ncreateContext();',
      "contexts of node:vm",
    ],
    ["has loaded SQLite", 'import "node:sqlite";', "node:sqlite"],
  ];
  const others: readonly UnfitCase[] = [
    [
      "has made a resolver",
      'import { Resolver } from "node:dns";\nglobalThis.kept = new Resolver();',
      "resolver of node:dns",
    ],
    [
      "leaves a server",
      'import { createServer } from "node:net";\nawait new Promise((done) => createServer().listen("/tmp/s", done).unref());',
      "socket:",
    ],
    [
      "leaves a file",
      'import { writeFileSync } from "node:fs";\nwriteFileSync("/dev/shm/left", "");',
      "/dev/shm/left",
    ],
    [
      "keeps one that it has drawn by another name",
      'import crypto from "node:crypto";\ncrypto.pseudoRandomBytes(256);',
      "256 random bytes",
    ],
    [
      "has gathered one",
      'import { randomBytes } from "node:crypto";\nfor (let n = 0; n < 5; n++) randomBytes(64);',
      "320 random bytes",
    ],
  ];
  const isUnfit = async ([, source, reason]: UnfitCase, context: TestContext): Promise<void> => {
    const host = await openHost(context, `${source}\nexport const run = () => 1;\n`);
    const opened = host.openTemplate();
    await expect(opened).rejects.toMatchObject({ isUnfit: true });
    await expect(opened).rejects.toThrow(reason);
  };

  test.for(usual)("%s", isUnfit);
  test.for(withGenerators)("%s", { tags: "promise-W1" }, isUnfit);
  test.for(others)("%s", { tags: "full" }, isUnfit);
});
