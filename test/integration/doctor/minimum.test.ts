/**
 * SANDBOX_MINIMUM: on a host that lacks something that is asked for, a worker does not start.
 */
import { chmod, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, afterEach, beforeEach, describe, expect, test } from "vitest";
import { Agent } from "../../../harness/agent.ts";
import { type DevBroker, startDevBroker } from "../../../harness/dev-broker.ts";
import { readSandboxConfig } from "../../../worker/config.ts";
import {
  type Lack,
  asOrdinaryUser,
  crippledHost,
  crippledHostProblem,
} from "../../support/crippled-hosts.ts";
import {
  manifestText,
  namespace,
  reachableDirectory,
  startRig,
  workerEnvironment,
} from "../../support/rig.ts";
import { WorkerProcess } from "../../support/worker-process.ts";

const fixtureTools = new URL("../../fixtures/tools/", import.meta.url).pathname;

describe("a worker", () => {
  let base: string;
  let broker: DevBroker;
  let environment: Record<string, string>;

  beforeEach(async () => {
    base = await reachableDirectory();
    await chmod(base, 0o777);
    broker = await startDevBroker();
    const manifestPath = join(base, "manifest.yaml");
    const tools = { well: { function: "well", sandbox_profile: "standard" } };
    await writeFile(manifestPath, manifestText(tools));
    environment = workerEnvironment(broker, base, manifestPath, fixtureTools);
  });
  afterEach(async () => {
    await broker[Symbol.asyncDispose]();
    await rm(base, { recursive: true, force: true });
  });

  async function hostWithout(lack: Lack, context: TestContext): Promise<readonly string[]> {
    const prefix = await crippledHost(lack, base);
    const problem = await crippledHostProblem(prefix);
    context.skip(problem !== undefined, `such a host cannot be made here: ${problem}`);
    return prefix;
  }

  async function start(prefix: readonly string[], minimum?: string): Promise<WorkerProcess> {
    const asked = minimum === undefined ? {} : { SANDBOX_MINIMUM: minimum };
    return new WorkerProcess({ ...environment, ...asked }, [], prefix);
  }

  async function refusal(worker: WorkerProcess): Promise<string> {
    expect((await worker.exited).code).toBe(78);
    return worker.output;
  }

  async function callSucceeds(): Promise<void> {
    const address = { host: broker.host, port: broker.port, namespace };
    await using agent = await Agent.connect(address, AbortSignal.timeout(5_000));
    expect(await agent.call({ tool: "well" })).toMatchObject({ kind: "success" });
  }

  test("does not start without user namespaces, whatever it asks for", async (context) => {
    const prefix = await hostWithout("user namespaces", context);
    for (const minimum of [undefined, "proc", "cgroups"]) {
      await using worker = await start(prefix, minimum);
      const output = await refusal(worker);
      expect(output).toMatch(/^str-worker: SANDBOX_MINIMUM: /);
      expect(output).toMatch(/user-namespaces is missing: .*ENOSPC/);
      expect(output).toMatch(/sysctl -w user\.max_user_namespaces=/);
    }
  });

  test("names each check that is not held, with its remedy, and starts when it is not asked for", async (context) => {
    const prefix = await hostWithout("network namespaces", context);
    await using refused = await start(prefix);
    const output = await refusal(refused);
    expect(output).toMatch(/network-namespace is missing: .*ENOSPC/);
    expect(output).toMatch(/sysctl -w user\.max_net_namespaces=/);

    await using worker = await start(prefix, "user-namespaces,seccomp");
    await worker.says("worker ready");
    await callSucceeds();
    // What is not asked for is told all the same.
    expect(worker.output).toMatch(/"check":"network-namespace","state":"missing"/);
  });

  test("starts with an empty /proc, unless a new one is asked for by name", async (context) => {
    const prefix = await hostWithout("a /proc of its own", context);
    await using worker = await start(prefix);
    await worker.says("worker ready");
    await callSucceeds();
    await using refused = await start(prefix, "proc,fresh-proc");
    expect(await refusal(refused)).toMatch(
      /fresh-proc is missing: empty inside; bubblewrap says: /,
    );
  });

  test("runs calls where container engines make sysctls read-only", async (context) => {
    const prefix = await hostWithout("sysctls", context);
    await using worker = await start(prefix);
    await worker.says("worker ready");
    await callSucceeds();
  });

  test("that holds all it is asked for starts as an ordinary user", async (context) => {
    const problem = await crippledHostProblem(asOrdinaryUser);
    context.skip(problem !== undefined, problem);
    await using worker = await start(
      asOrdinaryUser,
      "user-namespaces,nested-namespaces,fresh-proc",
    );
    await worker.says("worker ready");
  });
});

test.each(["none", "all", " ", "proc;seccomp", "proc,,seccomp"])(
  "a minimum of the form '%s' is refused, with what is accepted",
  (SANDBOX_MINIMUM) => {
    expect(() => readSandboxConfig({ SANDBOX_MINIMUM })).toThrow(
      `SANDBOX_MINIMUM: "${SANDBOX_MINIMUM}" is not accepted; accepted: one or more of user-namespaces, `,
    );
  },
);

test("a sandbox that fails when the worker runs already is SANDBOX_FAILED, with bubblewrap's words in the log", async () => {
  const base = await reachableDirectory();
  const bwrapBin = join(base, "bwrap");
  const order = join(base, "fail");
  const script = `#!/bin/sh\n[ ! -e ${order} ] || exec /usr/bin/bwrap --no-such-option\nexec /usr/bin/bwrap "$@"\n`;
  await writeFile(bwrapBin, script, { mode: 0o755 });
  await using rig = await startRig({
    tools: { well: { function: "well" } },
    environment: { SANDBOX_BWRAP_BIN: bwrapBin },
  });
  expect(await rig.call("well")).toMatchObject({ kind: "success" });
  await writeFile(order, "");
  expect(await rig.call("well")).toMatchObject({ kind: "error", code: "SANDBOX_FAILED" });
  const logged = rig.logLines.filter((line) => line.includes("invocation failed"));
  expect(logged.join("\n")).toMatch(/bwrap: Unknown option --no-such-option/);
  await rm(base, { recursive: true, force: true });
});
