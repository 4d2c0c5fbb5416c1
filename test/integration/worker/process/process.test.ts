/**
 * The worker as a process: configuration, checks, health, signals, exit codes.
 */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { createConnection, createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { type DevBroker, startDevBroker } from "../../../../harness/dev-broker/dev-broker.ts";
import { invokeTopic } from "../../../../worker/protocol/topics.ts";
import { freePorts } from "../../../support/brokers/rabbitmq-ports.ts";
import { manifestText, namespace } from "../../../support/workers/rig.ts";
import { WorkerProcess } from "../../../support/workers/worker-process.ts";
import { runWorker } from "../../../support/workers/worker-run.ts";
import {
  type WorkerSurroundings,
  surroundWorker,
} from "../../../support/workers/worker-surroundings.ts";
import { awaitedLater } from "../../../support/workers/awaited-later.ts";

const tools = {
  well: { function: "well" },
  sleeps: { function: "sleeps" },
  ignores_term: { function: "ignores_term" },
  listens: { function: "listens", network: "host" },
} as const;

describe("the worker process", () => {
  let base: string;
  let broker: DevBroker;
  let environment: Record<string, string>;
  let connectAgent: WorkerSurroundings["connectAgent"];

  beforeEach(async () => {
    ({ base, broker, environment, connectAgent } = await surroundWorker(tools));
  });

  async function exitOf(worker: WorkerProcess): Promise<{ code: number | null; output: string }> {
    const { code } = await worker.exited;
    return { code, output: worker.output };
  }

  test("exits 78 with one line per problem of its configuration", async () => {
    await using worker = new WorkerProcess({ DEV_BROKER_PORT: "x", SANDBOX_MAX_CONCURRENT: "0" });
    const { code, output } = await exitOf(worker);
    expect(code).toBe(78);
    expect(output.split("\n").filter(Boolean)).toEqual([
      expect.stringMatching(/SAM_NAMESPACE: is not set; accepted: /),
      expect.stringMatching(/DEV_BROKER_PORT: "x" is not accepted; accepted: /),
      expect.stringMatching(/SANDBOX_MAX_CONCURRENT: "0" is not accepted; accepted: /),
      "AMQP_URL, DEV_BROKER_HOST, SOLACE_HOST: none is set; set the one of the broker to connect to",
    ]);
  });

  test("exits 78 naming place and problem of a broken manifest", async () => {
    await writeFile(environment["MANIFEST_PATH"]!, "version: 1\ntools:\n  echo:\n    module: 7\n");
    const { code, output } = await runWorker(environment);
    expect(code).toBe(78);
    expect(output).toMatch(/manifest\.yaml:4:\d+: tool "echo": module/);
  });

  test(
    "exits 78 when bubblewrap is missing or cannot make a sandbox, in bubblewrap's words",
    { tags: "promise-S26" },
    async () => {
      for (const bwrap of ["/nonexistent/bwrap", "/usr/bin/false"]) {
        const { code, output } = await runWorker({ ...environment, SANDBOX_BWRAP_BIN: bwrap });
        expect(code).toBe(78);
        expect(output).toContain(`SANDBOX_BWRAP_BIN: `);
        expect(output).toContain(bwrap);
      }
    },
  );

  test(
    "exits 78 in plain lines when its port is taken or its tools are missing",
    { tags: "full" },
    async () => {
      await using taken = createServer();
      taken.listen(0);
      await once(taken, "listening");
      const { port } = taken.address() as { port: number };
      await using deaf = new WorkerProcess({ ...environment, HEALTH_PORT: String(port) });
      expect(await exitOf(deaf)).toMatchObject({
        code: 78,
        output: expect.stringMatching(
          /^str-worker: HEALTH_PORT: "\d+" cannot be listened on: .*EADDRINUSE.*\n$/,
        ),
      });
      await using toolless = new WorkerProcess({
        ...environment,
        TOOLS_PYTHON_DIR: "/no/such",
        TOOLS_NODE_DIR: "/no/others",
        TOOLS_EXECUTABLE_DIR: "/no/more",
      });
      expect(await exitOf(toolless)).toMatchObject({
        code: 78,
        output:
          "str-worker: TOOLS_PYTHON_DIR: /no/such is not a directory, and neither is /no/others (TOOLS_NODE_DIR) or /no/more (TOOLS_EXECUTABLE_DIR)\n",
      });
    },
  );

  test.each([
    ["the DevBroker", (port: number) => ({ DEV_BROKER_PORT: String(port) })],
    ["RabbitMQ", (port: number) => ({ AMQP_URL: `amqp://guest:s3cret@127.0.0.1:${port}` })],
    ["Solace", (port: number) => ({ SOLACE_HOST: `tcp://127.0.0.1:${port}` })],
  ])(
    "exits 69 when %s stays away for as many attempts as are configured",
    { tags: "full" },
    async (_, tell) => {
      const [port = 0] = await freePorts(1);
      const told = tell(port);
      await using worker = new WorkerProcess({
        ...environment,
        ...(!("DEV_BROKER_PORT" in told) && { DEV_BROKER_HOST: "" }),
        ...told,
        CONNECT_RETRIES: "3",
        CONNECT_RETRY_DELAY_MS: "1",
        SOLACE_RECONNECT_RETRIES: "3",
        SOLACE_RECONNECT_DELAY_MS: "1",
      });
      const { code, output } = await exitOf(worker);
      expect(code).toBe(69);
      expect(output.match(/"broker.connect_failed"/g)).toHaveLength(1);
      expect(output).not.toContain('"stack":"BrokerError: Cannot');
      expect(output).not.toContain("s3cret");
    },
  );

  test(
    "refuses unknown arguments with 64, and prints its help and version",
    { tags: "full" },
    async () => {
      await using refused = new WorkerProcess({}, ["--bogus"]);
      expect(await exitOf(refused)).toEqual({
        code: 64,
        output:
          'str-worker: there is no argument "--bogus"; str-worker --help says what there is\n',
      });
      await using excess = new WorkerProcess({}, ["--check", "all"]);
      expect(await exitOf(excess)).toMatchObject({
        code: 64,
        output: expect.stringContaining(
          '"all" is too much: there is one argument at most',
        ) as unknown,
      });
      for (const options of [["--help"], ["-h"], ["--check", "--help"]]) {
        await using help = new WorkerProcess({}, options);
        expect(await exitOf(help)).toEqual({
          code: 0,
          output: expect.stringMatching(/SANDBOX_MAX_CONCURRENT .*\[4\]/) as unknown,
        });
      }
      await using version = new WorkerProcess({}, ["--version"]);
      expect(await exitOf(version)).toMatchObject({
        code: 0,
        output: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      });
    },
  );

  test("--check says what it found and leaves nothing behind", async () => {
    const manifest = environment["MANIFEST_PATH"]!;
    await writeFile(manifest, manifestText(tools).replace("{", '{"owner": "me",'));
    const { code, output } = await runWorker({ ...environment, LOG_LEVEL: "silent" }, ["--check"]);
    expect(code).toBe(0);
    expect(JSON.parse(output)).toMatchObject({
      namespace,
      topics: Object.keys(tools).map((tool) => invokeTopic(namespace, tool)),
      warnings: [expect.stringContaining("owner: unknown key, not used")],
      unloadableTools: {},
      store: "filesystem",
      storeAccess: { base: { uid: expect.any(Number) }, problems: [] },
      sandboxes: {
        bubblewrap: {
          technology: expect.stringContaining("bubblewrap"),
          enforcement: { openFiles: "kernel" },
          unenforced: expect.any(Array),
        },
      },
      runners: [expect.stringMatching(/^Python 3\./)],
      profiles: [{ name: "restrictive" }, { name: "standard" }, { name: "permissive" }],
    });
    expect(await readdir(join(base, "work"))).toEqual([]);
  });

  test("--check --strict fails for warnings of the manifest, and for tools that are not served", async () => {
    const manifest = environment["MANIFEST_PATH"]!;
    const gone = "{module: misbehaving, function: well, package: no-such-package}";
    await writeFile(manifest, `owner: me\nversion: 1\ntools: {gone: ${gone}}\n`);
    const quiet = { ...environment, LOG_LEVEL: "silent" };
    const { code, output } = await runWorker(quiet, ["--check", "--strict"]);
    expect(code).toBe(78);
    expect(output.split("\n").filter((line) => line.startsWith("str-worker: "))).toEqual([
      `str-worker: ${manifest}:1:1: owner: unknown key, not used; the keys are version, credentials, tools`,
      expect.stringMatching(/^str-worker: tool "gone" is not served: .*no-such-package/),
    ]);
  });

  test("--check loads each tool in its sandbox and calls none, and --strict fails for one that does not load", async () => {
    const entries = {
      loads: { module: "loads", function: "run" },
      Counter: { module: "loads", class_name: "Counter" },
      misnamed: { module: "loads", function: "walk" },
      broken: { module: "broken", function: "run" },
      file_name: { module: "loads.py", function: "run" },
      script: { runtime: "node", module: "script.js", function: "run" },
      imports: { runtime: "node", module: "imports.js", function: "run" },
    } as const;
    const files = {
      "loads.py": "class Counter: ...\n\ndef run():\n    raise SystemExit(3)\n",
      "broken.py": "import os\n\nlimit = undefined_name\n",
      "script.js": "export function run() { process.exit(3); }\n",
      "imports.js": 'import "./nowhere.js";\nexport function run() {}\n',
    };
    const toolsDir = join(base, "own-tools");
    await mkdir(toolsDir);
    for (const [name, text] of Object.entries(files)) await writeFile(join(toolsDir, name), text);
    await writeFile(environment["MANIFEST_PATH"]!, manifestText(entries));
    const places = { TOOLS_PYTHON_DIR: toolsDir, TOOLS_NODE_DIR: toolsDir };
    const own = { ...environment, ...places, LOG_LEVEL: "silent", SANDBOX_COLOUR: "blue" };
    const { code, output } = await runWorker(own, ["--check", "--strict"]);
    expect(code).toBe(78);
    const end = output.lastIndexOf("\n}\n") + 3;
    const report = JSON.parse(output.slice(0, end)) as {
      unloadableTools: Record<string, { problem: string; output: string[] }>;
    };
    const misnamed = 'TOOL_NOT_FOUND: Module "loads" has no function "walk"';
    const [broken, imports] = [
      "IMPORT_ERROR: Module \"broken\" cannot be imported: NameError: name 'undefined_name' is not defined",
      'IMPORT_ERROR: Module "imports.js" cannot be imported: ',
    ];
    const fileName = 'module "loads.py" is the name of a file; the module in it is called "loads"';
    expect(report).toMatchObject({
      warnings: ["SANDBOX_COLOUR: there is no such variable of the worker; it is not used"],
      unavailableTools: { file_name: fileName },
      unloadableTools: {
        misnamed: { problem: misnamed },
        broken: { problem: broken },
        imports: { problem: expect.stringContaining(imports) },
      },
    });
    expect(Object.keys(report.unloadableTools)).toEqual(["misnamed", "broken", "imports"]);
    const traceback = report.unloadableTools["broken"]!.output;
    expect(traceback).toContainEqual(expect.stringMatching(/broken\.py", line 3/));
    expect(traceback).toContain("    limit = undefined_name");
    expect(output.slice(end).trim().split("\n")).toEqual([
      "str-worker: SANDBOX_COLOUR: there is no such variable of the worker; it is not used",
      `str-worker: tool "file_name" is not served: ${fileName}`,
      `str-worker: tool "misnamed" does not load: ${misnamed}`,
      `str-worker: tool "broken" does not load: ${broken}`,
      expect.stringContaining(`str-worker: tool "imports" does not load: ${imports}`),
    ]);
  });

  test(
    "says namespace, topics, store and profiles when it is ready, and nothing secret",
    { tags: "full" },
    async () => {
      await using worker = new WorkerProcess({ ...environment, SOLACE_PASSWORD: "hunter2" });
      await worker.says("worker.ready");
      const line = worker.output
        .split("\n")
        .find((candidate) => candidate.includes("worker.ready"))!;
      expect(JSON.parse(line)).toMatchObject({
        namespace,
        store: "filesystem",
        topics: expect.arrayContaining([invokeTopic(namespace, "well")]),
      });
      expect(worker.output).not.toContain("hunter2");
    },
  );

  test(
    "is live before it is ready, and ready only with a broker connection",
    { tags: "full" },
    async () => {
      const probe = createServer();
      probe.listen(0);
      await once(probe, "listening");
      const { port } = probe.address() as { port: number };
      probe.close();
      const get = async (path: string) => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
        return response?.status;
      };
      await broker[Symbol.asyncDispose]();
      await using _worker = new WorkerProcess({ ...environment, HEALTH_PORT: String(port) });
      await vi.waitFor(async () => expect(await get("/livez")).toBe(200), { timeout: 30_000 });
      expect(await get("/readyz")).toBe(503);
      await using restarted = await startDevBroker({ port: broker.port });
      await vi.waitFor(async () => expect(await get("/readyz")).toBe(200), { timeout: 20_000 });
      restarted.dropConnections();
      await restarted[Symbol.asyncDispose]();
      await vi.waitFor(async () => expect(await get("/readyz")).toBe(503), { timeout: 30_000 });
    },
  );

  test("on SIGTERM finishes what runs, takes nothing new, answers, and exits 0", async () => {
    await using worker = new WorkerProcess(environment);
    await worker.says("worker.ready");
    await using agent = await connectAgent();
    const call = { tool: "sleeps", args: { seconds: 1 }, timeoutSeconds: 20 };
    const running = awaitedLater(agent.call(call));
    await worker.says("call.received");
    worker.child.kill("SIGTERM");
    await worker.says("worker.draining");
    expect(await running).toMatchObject({ kind: "success", toolResult: { slept: 1 } });
    expect(await worker.exited).toEqual({ code: 0, signal: null });
    expect(await readdir(join(base, "work"))).toEqual([]);
  });

  test("at the drain deadline stops what runs and answers it", { tags: "full" }, async () => {
    await using worker = new WorkerProcess({ ...environment, DRAIN_TIMEOUT_SECONDS: "1" });
    await worker.says("worker.ready");
    await using agent = await connectAgent();
    // The agent tries once more, as real agents do; that second call ends with the agent.
    void awaitedLater(agent.call({ tool: "ignores_term", timeoutSeconds: 60 }));
    await worker.says("tool.started");
    worker.child.kill("SIGTERM");
    expect(await worker.exited).toEqual({ code: 0, signal: null });
    expect(worker.output).toMatch(/"event":"call.failed".*"code":"SANDBOX_FAILED"/);
  });

  test("a second signal stops at once, and still answers", { tags: "full" }, async () => {
    await using worker = new WorkerProcess(environment);
    await worker.says("worker.ready");
    await using agent = await connectAgent();
    void awaitedLater(agent.call({ tool: "ignores_term", timeoutSeconds: 60 }));
    await worker.says("tool.started");
    worker.child.kill("SIGTERM");
    await worker.says("worker.draining");
    worker.child.kill("SIGINT");
    expect((await worker.exited).code).toBe(130);
    expect(worker.output).toMatch(/"event":"call.failed".*"code":"SANDBOX_FAILED"/);
  });

  test(
    "a tool does not survive a killed worker, and the next worker sweeps what is left",
    { tags: ["full", "promise-E6"] },
    async () => {
      await using worker = new WorkerProcess(environment);
      await worker.says("worker.ready");
      await using agent = await connectAgent();
      const listening = Promise.withResolvers<number>();
      const onStatus = (text: string) => listening.resolve(Number(text));
      void awaitedLater(agent.call({ tool: "listens", timeoutSeconds: 60 }, { onStatus }));
      const port = await listening.promise;
      expect(await isListening(port)).toBe(true);
      await worker[Symbol.asyncDispose]();
      await vi.waitFor(async () => expect(await isListening(port)).toBe(false), {
        timeout: 30_000,
      });
      expect(await readdir(join(base, "work"))).toHaveLength(1);
      await using next = new WorkerProcess(environment, ["--check"]);
      await next.exited;
      expect(await readdir(join(base, "work"))).toEqual([]);
    },
  );

  test(
    "does not hand descriptors of its own parent to tools",
    { tags: ["full", "promise-S3"] },
    async () => {
      await writeFile(
        environment["MANIFEST_PATH"]!,
        manifestText({ looks: { function: "looks_around" } }),
      );
      const prefix = ["bash", "-c", 'exec 251</etc/hostname 9</etc/hostname; exec "$@"', "bash"];
      await using worker = new WorkerProcess(environment, [], prefix);
      await worker.says("worker.ready");
      await using agent = await connectAgent();
      const result = await agent.call({ tool: "looks" });
      expect(
        Object.keys(
          (result as unknown as { toolResult: { descriptors: object } }).toolResult.descriptors,
        ),
      ).toEqual(["0", "1", "2", "3"]);
    },
  );
});

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
