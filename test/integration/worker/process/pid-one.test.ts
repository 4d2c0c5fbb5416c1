/**
 * The worker as the first process of a container: nothing it kills stays as a zombie, and signals
 * reach it.
 */
import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Agent } from "../../../../harness/agent.ts";
import { type DevBroker, startDevBroker } from "../../../../harness/dev-broker/dev-broker.ts";
import {
  manifestText,
  namespace,
  reachableDirectory,
  workerEnvironment,
} from "../../../support/workers/rig.ts";
import { WorkerProcess } from "../../../support/workers/worker-process.ts";
import { isRoot } from "../../../support/is-root.ts";
import { awaitedLater } from "../../../support/workers/awaited-later.ts";

const run = promisify(execFile);

const fixtureTools = fileURLToPath(new URL("../../../fixtures/tools/", import.meta.url));
const tools = {
  ignores_term: { function: "ignores_term" },
  sleeps: { function: "sleeps" },
  well: { function: "well" },
};
/** In a pid namespace the command is the first process. */
const prefix = [
  "unshare",
  ...(isRoot ? [] : ["--user", "--map-current-user"]),
  ...["--pid", "--fork", "--mount-proc"],
];

interface Child {
  readonly pid: number;
  readonly isZombie: boolean;
}

/**
 * A worker process whose signals go to the first process of its pid namespace, as an engine sends
 * them.
 */
class FirstProcess extends WorkerProcess {
  constructor(environment: Readonly<Record<string, string>>, argv: readonly string[] = []) {
    super(environment, argv, prefix);
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    process.kill(await this.#first(), signal);
  }

  /** Of the first process. */
  async children(): Promise<readonly Child[]> {
    const pids = await childrenOf(await this.#first());
    return Promise.all(
      pids.map(async (pid) => {
        const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
        return { pid, isZombie: / Z /.test(stat) };
      }),
    );
  }

  async zombies(): Promise<readonly Child[]> {
    return (await this.children()).filter(({ isZombie }) => isZombie);
  }

  async #first(): Promise<number> {
    const [first] = await childrenOf(this.child.pid!);
    if (first === undefined) throw new Error("the namespace has no process");
    return first;
  }

  /** unshare(1) does not take its child along. */
  override async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null) await this.signal("SIGKILL");
    await super[Symbol.asyncDispose]();
  }
}

async function childrenOf(pid: number): Promise<readonly number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "latin1");
  return text.split(" ").filter(Boolean).map(Number);
}

describe("a worker that is process 1", () => {
  let base: string;
  let broker: DevBroker;
  let environment: Record<string, string>;

  beforeEach(async (context) => {
    const problem = await run(prefix[0]!, [...prefix.slice(1), "/bin/true"]).then(
      () => undefined,
      (error: Error) => error.message,
    );
    context.skip(problem !== undefined, `no pid namespace can be made here: ${problem}`);
    base = await reachableDirectory();
    broker = await startDevBroker();
    const manifestPath = join(base, "manifest.yaml");
    await writeFile(manifestPath, manifestText(tools));
    environment = workerEnvironment(broker, base, manifestPath, fixtureTools);
  });
  afterEach(async (context) => {
    if (context.task.result?.state === "skip") return;
    await broker[Symbol.asyncDispose]();
    await rm(base, { recursive: true, force: true });
  });

  const connectAgent = () =>
    Agent.connect({ host: broker.host, port: broker.port, namespace }, AbortSignal.timeout(30_000));

  test(
    "leaves no zombie of tools that are killed at their time limit",
    { tags: ["full", "promise-R5"] },
    async () => {
      await using worker = new FirstProcess(environment);
      await worker.says("worker.ready");
      await using agent = await connectAgent();
      for (const _round of [1, 2]) {
        const calls = [1, 2, 3].map(() => agent.call({ tool: "ignores_term", timeoutSeconds: 1 }));
        for (const answer of await Promise.all(calls)) expect(answer.kind).toBe("timed-out");
      }
      expect(await agent.call({ tool: "well" })).toMatchObject({ kind: "success" });
      await vi.waitFor(async () => expect(await worker.zombies()).toEqual([]), { timeout: 30_000 });
    },
  );

  test("drains on SIGTERM and exits with 0", { tags: "full" }, async () => {
    await using worker = new FirstProcess(environment);
    await worker.says("worker.ready");
    await using agent = await connectAgent();
    const call = awaitedLater(agent.call({ tool: "sleeps", args: { seconds: 1 } }));
    await worker.says("tool.started");
    await worker.signal("SIGTERM");
    expect(await call).toMatchObject({ kind: "success" });
    expect((await worker.exited).code).toBe(0);
    expect(worker.output).toContain('"worker.drained"');
  });

  test("stops at once on a second signal, with its number", { tags: "full" }, async () => {
    await using worker = new FirstProcess(environment);
    await worker.says("worker.ready");
    await using agent = await connectAgent();
    const call = awaitedLater(agent.call({ tool: "sleeps", args: { seconds: 20 } }));
    await worker.says("tool.started");
    await worker.signal("SIGTERM");
    await worker.says("worker.draining");
    await worker.signal("SIGINT");
    expect((await worker.exited).code).toBe(130);
    expect(await call).toMatchObject({ kind: "error" });
  });

  test("exits with the code of its configuration", { tags: "full" }, async () => {
    await using worker = new FirstProcess({ ...environment, DEV_BROKER_PORT: "x" });
    expect((await worker.exited).code).toBe(78);
    expect(worker.output).toMatch(/^str-worker: DEV_BROKER_PORT: /);
  });

  test("takes its options along", async () => {
    await using worker = new FirstProcess({}, ["--version"]);
    expect((await worker.exited).code).toBe(0);
    expect(worker.output).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test("that is killed ends its container", { tags: "full" }, async () => {
    await using worker = new FirstProcess(environment);
    await worker.says("worker.ready");
    const [command] = await worker.children();
    process.kill(command!.pid, "SIGKILL");
    expect((await worker.exited).code).toBe(137);
  });
});
