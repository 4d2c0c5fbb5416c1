/**
 * SANDBOX_MINIMUM: on a host that lacks something that is asked for, a worker does not start.
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, beforeEach, describe, expect, test } from "vitest";
import { check } from "../../../worker/check.ts";
import { readConfig, readSandboxConfig } from "../../../worker/config/config.ts";
import type { ReportedCheck } from "../../../worker/sandbox/host-check.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { createHost } from "../../../worker/wiring/host.ts";
import {
  type Lack,
  asOrdinaryUser,
  crippledHost,
  crippledHostProblem,
} from "../../support/sandboxes/crippled-hosts.ts";
import { consultHere } from "../../support/doctor/consultation.ts";
import { pythonWithoutSockets } from "../../support/sandboxes/network-place.ts";
import { reachableDirectory, startRig } from "../../support/workers/rig.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import {
  type WorkerSurroundings,
  surroundWorker,
} from "../../support/workers/worker-surroundings.ts";

describe("a worker", () => {
  let surroundings: WorkerSurroundings;

  beforeEach(async () => {
    surroundings = await surroundWorker({
      well: { function: "well", sandbox_profile: "standard", network: "host" },
    });
  });

  async function hostWithout(lack: Lack, context: TestContext): Promise<readonly string[]> {
    const prefix = await crippledHost(lack, surroundings.base);
    const problem = await crippledHostProblem(prefix);
    context.skip(problem !== undefined, `such a host cannot be made here: ${problem}`);
    return prefix;
  }

  async function start(prefix: readonly string[], minimum?: string): Promise<WorkerProcess> {
    const asked = minimum === undefined ? {} : { SANDBOX_MINIMUM: minimum };
    return new WorkerProcess({ ...surroundings.environment, ...asked }, [], prefix);
  }

  async function refusal(worker: WorkerProcess): Promise<string> {
    expect((await worker.exited).code).toBe(78);
    return worker.output;
  }

  async function callSucceeds(): Promise<void> {
    await using agent = await surroundings.connectAgent();
    expect(await agent.call({ tool: "well" })).toMatchObject({ kind: "success" });
  }

  test(
    "does not start without user namespaces, whatever it asks for",
    { tags: "promise-R4" },
    async (context) => {
      const prefix = await hostWithout("user namespaces", context);
      for (const minimum of [undefined, "proc", "cgroups"]) {
        await using worker = await start(prefix, minimum);
        const output = await refusal(worker);
        expect(output).toMatch(/^str-worker: SANDBOX_MINIMUM: /);
        expect(output).toMatch(/user-namespaces is missing: .*ENOSPC/);
        expect(output).toMatch(/sysctl -w user\.max_user_namespaces=/);
      }
    },
  );

  test(
    "names each check that is not held, with its remedy, and starts when it is not asked for",
    { tags: ["full", "promise-R4"] },
    async (context) => {
      const prefix = await hostWithout("network namespaces", context);
      await using refused = await start(prefix);
      const output = await refusal(refused);
      expect(output).toMatch(/network-namespace is missing: .*ENOSPC/);
      expect(output).toMatch(/sysctl -w user\.max_net_namespaces=/);

      await using worker = await start(prefix, "user-namespaces,seccomp");
      await worker.says("worker.ready");
      await callSucceeds();
      // What is not asked for is told all the same.
      expect(worker.output).toMatch(/"check":"network-namespace","state":"missing"/);
    },
  );

  test(
    "starts with an empty /proc, unless a new one is asked for by name",
    { tags: "full" },
    async (context) => {
      const prefix = await hostWithout("a /proc of its own", context);
      await using worker = await start(prefix);
      await worker.says("worker.ready");
      await callSucceeds();
      await using refused = await start(prefix, "proc,fresh-proc");
      expect(await refusal(refused)).toMatch(
        /fresh-proc is missing: empty inside; bubblewrap says: /,
      );
    },
  );

  test(
    "runs calls where container engines make sysctls read-only",
    { tags: "full" },
    async (context) => {
      const prefix = await hostWithout("sysctls", context);
      await using worker = await start(prefix);
      await worker.says("worker.ready");
      await callSucceeds();
    },
  );

  test("tells the checks as the doctor does", { tags: "full" }, async () => {
    const asked = { SANDBOX_MINIMUM: "seccomp" };
    const environment = { ...surroundings.environment, ...asked };
    const host = createHost(createLogger("silent", 2), environment);
    const { text } = await check(readConfig(environment), host, AbortSignal.timeout(60_000));
    const doctor = await consultHere(asked);
    expect(doctor.code).toBe(0);
    const { sandboxes } = JSON.parse(text) as {
      sandboxes: { bubblewrap: { checks: readonly ReportedCheck[] } };
    };
    const reported = JSON.parse(doctor.output) as { checks: readonly ReportedCheck[] };
    // Findings may have a time in them.
    const withoutFinding = ({ finding, ...rest }: ReportedCheck) => ({
      ...rest,
      type: typeof finding,
    });
    const { checks } = sandboxes.bubblewrap;
    expect(checks.map(withoutFinding)).toEqual(reported.checks.map(withoutFinding));
    expect(checks.filter(({ required }) => required).map(({ name }) => name)).toEqual([
      "user-namespaces",
      "seccomp",
    ]);
  });

  test(
    "does not start without sockets in sandboxes where it asks for them",
    { tags: ["full", "promise-R4"] },
    async () => {
      const pythonBin = await pythonWithoutSockets(surroundings.base);
      const checked = (minimum: string) => {
        const given = { SANDBOX_PYTHON_BIN: pythonBin, SANDBOX_MINIMUM: minimum };
        const environment = { ...surroundings.environment, ...given };
        const host = createHost(createLogger("silent", 2), environment);
        return check(readConfig(environment), host, AbortSignal.timeout(60_000));
      };
      await expect(checked("user-namespaces,egress")).rejects.toMatchObject({
        setting: "minimum",
        message: expect.stringMatching(/\negress is missing: .*\n {2}.*setns/) as unknown,
      });
      expect(JSON.parse((await checked("user-namespaces")).text)).toMatchObject({
        sandboxes: {
          bubblewrap: {
            checks: expect.arrayContaining([
              expect.objectContaining({ name: "egress", state: "missing", required: false }),
            ]) as unknown,
          },
        },
      });
    },
  );

  test(
    "that holds all it is asked for starts as an ordinary user",
    { tags: "full" },
    async (context) => {
      const problem = await crippledHostProblem(asOrdinaryUser);
      context.skip(problem !== undefined, problem);
      await using worker = await start(
        asOrdinaryUser,
        "user-namespaces,nested-namespaces,fresh-proc",
      );
      await worker.says("worker.ready");
    },
  );
});

test.each(["none", "all", " ", "proc;seccomp", "proc,,seccomp"])(
  "a minimum of the form '%s' is refused, with what is accepted",
  (SANDBOX_MINIMUM) => {
    expect(() => readSandboxConfig({ SANDBOX_MINIMUM })).toThrow(
      `SANDBOX_MINIMUM: "${SANDBOX_MINIMUM}" is not accepted; accepted: one or more of user-namespaces, `,
    );
  },
);

test(
  "a sandbox that fails when the worker runs already is SANDBOX_FAILED, with bubblewrap's words in the log",
  { tags: "promise-R4" },
  async () => {
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
    const logged = rig.logLines.filter((line) => line.includes("call.failed"));
    expect(logged.join("\n")).toMatch(/bwrap: Unknown option --no-such-option/);
    await rm(base, { recursive: true, force: true });
  },
);
