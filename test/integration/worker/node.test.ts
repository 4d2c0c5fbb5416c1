/**
 * Tools written for Node, end to end: how they are called and how they end, what bounds them, and
 * which are served.
 */
import { chmod, cp, mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { proxyVariables } from "../../../worker/egress/http-proxy.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import type { ToolCall } from "../../../harness/messages.ts";
import { Agent } from "../../../harness/agent.ts";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { firstPrivateDirectory } from "../../../worker/sandbox/path-permissions.ts";
import { testPerProfile } from "../../support/sandboxes/per-profile.ts";
import {
  type Rig,
  manifestText,
  namespace,
  nodeTool,
  nodeToolPerProfile,
  reachableDirectory,
  startRig,
  workerEnvironment,
} from "../../support/workers/rig.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { loggedFacts } from "../../support/workers/kept-log.ts";
import { isRoot } from "../../support/is-root.ts";
import { patience } from "../../support/patience.ts";

const MiB = 1024 * 1024;
const profiles = [...builtInProfiles.values()];
const signal = new AbortController().signal;

describe("a Node tool", () => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig({
      tools: {
        echo: nodeTool("good.js", "echo"),
        tells: nodeTool("good.js", "tells"),
        greet: nodeTool("typed.ts", "greet"),
        shout: nodeTool("artifacts.ts", "shout"),
        throws: nodeTool("failing.ts", "throws"),
        reports: nodeTool("failing.ts", "reports"),
        exits: nodeTool("failing.ts", "exits"),
        spins: nodeTool("failing.ts", "spins"),
        broken: nodeTool("fails-on-import.js", "run"),
        nameless: nodeTool("good.js", "nowhere"),
        python: { function: "well" },
        allowed: nodeTool("looks.ts", "around", { env: ["RIG_ALLOWED", "RIG_UNSET"] }),
        ...nodeToolPerProfile("looks.ts", "around"),
        ...nodeToolPerProfile("looks.ts", "multiplies"),
        ...nodeToolPerProfile("looks.ts", "connects"),
        forks: nodeTool("looks.ts", "forks", { sandbox_profile: "restrictive" }),
      },
      environment: { RIG_ALLOWED: "shown", RIG_SECRET: "hidden" },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  async function result(tool: string, args = {}): Promise<Record<string, unknown>> {
    const answer = await rig.call(tool, args);
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    return answer.toolResult;
  }

  test("in JavaScript and one in TypeScript answer beside one in Python", async () => {
    expect(await result("echo", { message: "to Node" })).toEqual({ message: "to Node" });
    expect(await result("greet", { name: "Ada" })).toEqual({ text: "Hello, Ada" });
    expect(await result("python", { message: "to Python" })).toMatchObject({});
  });

  test("is told who calls and its configuration, and tells how far it is", async () => {
    const statuses: string[] = [];
    const answer = await rig.agent.call(
      { tool: "tells", args: { a: 1 }, toolConfig: { token: "t" }, userId: "u", sessionId: "s" },
      { onStatus: (status) => statuses.push(status) },
    );
    expect(answer).toMatchObject({
      kind: "success",
      toolResult: { args: { a: 1 }, user: "u", session: "s", token: "t" },
    });
    expect(statuses).toEqual(["half of it", "all of it"]);
  });

  test("reads artifacts and saves new ones, with type and description", async () => {
    const bytes = Buffer.from("quiet €");
    const source = { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes]) };
    await rig.store.save(rig.scope, "in.txt", source, { mimeType: "text/plain" }, signal);
    const references = new Map([["input_file", { filename: "in.txt", version: undefined }]]);
    const answer = await rig.call("shout", { input_file: "in.txt" }, { references });
    expect(answer).toMatchObject({
      kind: "success",
      toolResult: { name: "in.txt", text: "quiet €" },
      createdArtifacts: [
        { filename: "bytes.bin", mimeType: "application/octet-stream", sizeBytes: 3 },
        { filename: "shouted.txt", mimeType: "text/x-shout", description: "The same, louder" },
      ],
    });
    const saved = await rig.store.open(rig.scope, { filename: "shouted.txt", version: 0 }, signal);
    expect(await text(saved.body)).toBe("QUIET €");
  });

  test.each([
    ["throws", {}, "EXECUTION_ERROR", "Tool threw RangeError: invalid input format"],
    ["reports", {}, "TOOL_ERROR", "There is no such city"],
    ["broken", {}, "IMPORT_ERROR", /fails-on-import\.js.*no database/],
    ["nameless", {}, "TOOL_NOT_FOUND", /good\.js.*nowhere/],
    ["exits", { status: 3 }, "SANDBOX_FAILED", /exited with code 3/],
    ["exits", { status: 0 }, "EXECUTION_ERROR", /process\.exit\(0\)/],
  ] as const)("that %s is answered so: %j %s", async (tool, args, code, message) => {
    const expected = message instanceof RegExp ? expect.stringMatching(message) : message;
    expect(await rig.call(tool, args)).toMatchObject({ kind: "error", code, message: expected });
  });

  test("that never ends is ended at its time limit", { tags: "full" }, async () => {
    expect(await rig.call("spins", {}, { timeoutSeconds: 1 })).toMatchObject({ kind: "timed-out" });
  });

  testPerProfile("has the limits of profile %s", async (name) => {
    const { limits } = builtInProfiles.get(name)!;
    expect(await result(`around_${name}`)).toMatchObject({
      uid: 65534,
      cpus: Math.min(limits.cpus, navigator.hardwareConcurrency),
      limits: {
        // Not bounded in this way: see docs/sandbox.md.
        "Max address space": "unlimited",
        // The kill comes a second after the signal.
        "Max cpu time": String(limits.cpuSeconds + 1),
        "Max file size": String(limits.fileSizeBytes),
        "Max open files": String(limits.openFiles),
        "Max processes": String(limits.processes),
        "Max core file size": "0",
      },
      flags: expect.arrayContaining([`--max-old-space-size=${(0.75 * limits.memoryBytes) / MiB}`]),
      argv: [expect.any(String), "/sandbox/runner/main.js"],
    });
  });

  testPerProfile("uses threads and processes under profile %s", async (name) => {
    expect(await result(`multiplies_${name}`)).toEqual({
      thread: 42,
      child: "from a child",
      node: "42",
    });
  });

  test("starts no more processes than its profile allows", { tags: "full" }, async () => {
    const { started, failure } = await result("forks");
    expect(failure).toBe("EAGAIN");
    expect(started).toBeGreaterThan(5);
    expect(started).toBeLessThan(builtInProfiles.get("restrictive")!.limits.processes);
  });

  test("has the host's network under permissive alone", async () => {
    await using server = createServer((socket) => socket.destroy());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const outcomes = await Promise.all(
      profiles.map(async ({ name }) => (await result(`connects_${name}`, { port }))["outcome"]),
    );
    expect(outcomes).toEqual(["ECONNREFUSED", "ECONNREFUSED", "connected"]);
  });

  test("has an environment of its own, and of the worker's what its manifest entry names", async () => {
    const { env } = (await result("allowed")) as { env: Record<string, string> };
    delete env["NODE_COMPILE_CACHE"];
    expect(env).toEqual({
      PATH: expect.stringMatching(/\/usr\/local\/bin:\/usr\/bin:\/bin$/),
      HOME: "/tmp",
      TMPDIR: "/tmp",
      LANG: "C.UTF-8",
      PWD: "/sandbox/work",
      RIG_ALLOWED: "shown",
      // Under the default profile, whose network is public.
      ...Object.fromEntries(proxyVariables),
    });
  });

  test("is said to be bounded in memory, and by whom, at its start and the worker's", async () => {
    await result("echo");
    const kept = expect.stringMatching(/^(kernel|guard)$/) as unknown;
    const enforcement = expect.objectContaining({ memoryBytes: kept }) as unknown;
    expect(loggedFacts(rig.logLines, "tool.started")[0]).toMatchObject({
      backend: "bubblewrap",
      enforcement,
    });
    expect(loggedFacts(rig.logLines, "worker.ready")[0]).toMatchObject({
      runners: [expect.stringMatching(/^Python 3\./), expect.stringMatching(/^Node 2[4-9]\./)],
      sandboxes: { bubblewrap: { enforcement } },
    });
  });
});

describe("memory beyond the profile's", () => {
  let rig: Rig;

  beforeAll(async () => {
    const names = ["heap", "buffers", "children", "thread", "holds"];
    rig = await startRig({
      tools: Object.fromEntries(
        names.map((name) => [
          name,
          nodeTool("hungry.ts", name, { sandbox_profile: "restrictive" }),
        ]),
      ),
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  type Way = readonly [tool: string, args: ToolCall["args"]];
  const usual: readonly Way[] = [["buffers", {}]];
  const others: readonly Way[] = [
    ["heap", {}],
    ["children", { count: 2 }],
    ["thread", {}],
  ];

  const endsTheCall = async ([tool, args]: Way): Promise<void> => {
    expect(await rig.call(tool, args)).toMatchObject({
      kind: "error",
      code: "EXECUTION_ERROR",
      message: "Tool needs more memory than its sandbox may use",
    });
  };
  test.for(usual)(
    "that a tool takes by its %s ends the call, in words",
    { tags: "promise-E1" },
    endsTheCall,
  );
  test.for(others)(
    "that a tool takes by its %s ends the call in the same words",
    { tags: "full" },
    endsTheCall,
  );

  test("is none while a tool takes less, and goes with the call", { tags: "full" }, async () => {
    const call = () => rig.call("holds", { mebibytes: 400 });
    // Each has a sandbox of its own: together they hold more than one may.
    for (const answer of await Promise.all([call(), call()])) {
      expect(answer).toMatchObject({ kind: "success", toolResult: { held: 400 } });
    }
  });
});

describe("code that was compiled ahead", () => {
  const modules = (rig: Rig) =>
    loggedFacts(rig.logLines, "module.compiled").map(({ module }) => module);

  test(
    "is there for later calls of its module, and made anew when its file changes",
    { tags: "full" },
    async () => {
      await using rig = await startRig({
        tools: { greet: nodeTool("typed.ts", "greet"), cached: nodeTool("looks.ts", "cached") },
      });
      await vi.waitFor(() => expect(modules(rig)).toEqual(["typed.ts", "looks.ts"]), 20_000);
      // The runner's modules, the tool's, and its TypeScript without the types.
      expect(await rig.call("cached")).toMatchObject({
        toolResult: { files: expect.toSatisfy((files: string[]) => files.length > 5) },
      });
      expect(await rig.call("greet", { name: "Ada" })).toMatchObject({ kind: "success" });

      const changed = "export const greet = (): object => ({ text: 'changed' });";
      await writeFile(join(rig.nodeToolsDir, "typed.ts"), changed);
      const answers = await Promise.all([rig.call("greet"), rig.call("greet")]);
      for (const answer of answers)
        expect(answer).toMatchObject({ toolResult: { text: "changed" } });
      await vi.waitFor(
        () => expect(modules(rig)).toEqual(["typed.ts", "looks.ts", "typed.ts"]),
        20_000,
      );
      expect(await rig.call("greet")).toMatchObject({ toolResult: { text: "changed" } });
    },
  );

  test("holds nobody up where a module never ends being imported", { tags: "full" }, async () => {
    await using rig = await startRig({
      tools: { waits: nodeTool("waits.js", "run"), echo: nodeTool("good.js", "echo") },
      nodeFiles: { "waits.js": "for (;;);\n" },
    });
    expect(await rig.call("echo", { message: "here" })).toMatchObject({ kind: "success" });
    await rig.worker.drain(5_000);
    await rig[Symbol.asyncDispose]();
    // Called off, and not given its time.
    expect(loggedFacts(rig.logLines, "module.compile_failed")).toEqual([
      expect.objectContaining({
        module: "waits.js",
        err: expect.objectContaining({ message: "the worker is shutting down" }),
      }),
    ]);
  });
});

describe("which tools are served", () => {
  test("depends on their files, which may come later", { tags: "full" }, async () => {
    await using rig = await startRig({
      tools: {
        echo: nodeTool("good.js", "echo"),
        absent: nodeTool("absent.js", "run"),
        outside: nodeTool("outside.js", "run"),
      },
    });
    const reasons = () =>
      new Map(
        loggedFacts(rig.logLines, "tool.not_served").map(({ tool, reason }) => [tool, reason]),
      );
    expect([...reasons()]).toEqual([
      ["absent", "absent.js is not there"],
      ["outside", "outside.js is not there"],
    ]);
    await symlink("/etc/hostname", join(rig.nodeToolsDir, "outside.js"));
    await writeFile(join(rig.nodeToolsDir, "absent.js"), "export const run = () => ({ here: 1 });");
    // As an editor does it: with a manifest that says the same in other bytes.
    await writeFile(`${rig.manifestPath}.new`, `${await readFile(rig.manifestPath, "utf8")}\n`);
    await rename(`${rig.manifestPath}.new`, rig.manifestPath);
    const added = () =>
      loggedFacts(rig.logLines, "manifest.loaded").flatMap((each) => each["added"]);
    await vi.waitFor(() => expect(added()).toContain("absent"), patience);
    expect(await rig.call("absent")).toMatchObject({ toolResult: { here: 1 } });
    expect(reasons().get("outside")).toBe(
      "outside.js is a link to outside of the directory of Node tools",
    );
  });

  const dependsOnDirectory = async (missing: "python" | "node"): Promise<void> => {
    const variable = missing === "python" ? "TOOLS_PYTHON_DIR" : "TOOLS_NODE_DIR";
    const bin = missing === "python" ? "SANDBOX_PYTHON_BIN" : "SANDBOX_NODE_BIN";
    await using rig = await startRig({
      // Networks of sandboxes take Python, too.
      tools: {
        echo: nodeTool("good.js", "echo", { network: "none" }),
        well: { function: "well", network: "none" },
      },
      // With no directory of a language its interpreter is not looked at.
      environment: { [variable]: "/no/such/tools", [bin]: "/no/such/interpreter" },
    });
    const [served, unserved] = missing === "python" ? ["echo", "well"] : ["well", "echo"];
    expect(await rig.call(served, { message: "here" })).toMatchObject({ kind: "success" });
    expect(loggedFacts(rig.logLines, "tool.not_served")).toEqual([
      expect.objectContaining({
        tool: unserved,
        reason: `${variable} is /no/such/tools, which was not a directory when the worker started`,
      }),
    ]);
  };
  test("depends on there being a directory of Python tools", () => dependsOnDirectory("python"));
  test("depends on there being a directory of Node tools", { tags: "full" }, () =>
    dependsOnDirectory("node"),
  );
});

test(
  "a Node program and tools below a private directory serve all the same",
  { tags: ["full", "promise-S12"] },
  async () => {
    const base = await reachableDirectory();
    await using _base = { [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true }) };
    const program = join(base, "private", "node");
    await mkdir(join(base, "private"));
    await cp(process.execPath, program);
    await writeFile(join(base, "private", "secret.txt"), "not for tools");
    // As a home directory is.
    await chmod(join(base, "private"), 0o700);
    await using rig = await startRig({
      tools: { around: nodeTool("looks.ts", "around"), greet: nodeTool("typed.ts", "greet") },
      environment: { SANDBOX_NODE_BIN: program },
      toolsDirMode: 0o700,
    });
    expect(await rig.call("greet", { name: "Ada" })).toMatchObject({
      toolResult: { text: "Hello, Ada" },
    });
    expect(await rig.call("around")).toMatchObject({
      toolResult: { execPath: "/sandbox/interpreter/node", interpreter: ["node"] },
    });
  },
);

test(
  "a worker without any privilege runs Node tools and bounds their memory",
  { tags: "full" },
  async (context) => {
    if (!isRoot) context.skip("needs root to become another user");
    const barrier = await firstPrivateDirectory(import.meta.dirname);
    if (barrier !== undefined) context.skip("the checkout is private to root");
    await using owned = new AsyncDisposableStack();
    const base = await reachableDirectory();
    owned.defer(() => rm(base, { recursive: true, force: true }));
    await chmod(base, 0o777);
    const broker = owned.use(await startDevBroker());
    const manifestPath = join(base, "manifest.yaml");
    const tools = {
      greet: nodeTool("typed.ts", "greet"),
      children: nodeTool("hungry.ts", "children", { sandbox_profile: "restrictive" }),
    };
    await writeFile(manifestPath, manifestText(tools));
    const environment = {
      ...workerEnvironment(broker, base, manifestPath, "/no/such/tools"),
      TOOLS_NODE_DIR: fileURLToPath(new URL("../../fixtures/tools-node", import.meta.url)),
    };
    const uid = "60100";
    const prefix = ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", "--no-new-privs"];
    const worker = owned.use(
      new WorkerProcess(environment, [], [...prefix, "--bounding-set=-all"]),
    );
    await worker.says('"event":"module.compiled","module":"hungry.ts"');
    const { host, port } = broker;
    const agent = owned.use(
      await Agent.connect({ host, port, namespace }, AbortSignal.timeout(30_000)),
    );
    expect(await agent.call({ tool: "greet", args: { name: "Ada" } })).toMatchObject({
      toolResult: { text: "Hello, Ada" },
    });
    expect(await agent.call({ tool: "children", args: { count: 2 } })).toMatchObject({
      code: "EXECUTION_ERROR",
      message: "Tool needs more memory than its sandbox may use",
    });
  },
);
