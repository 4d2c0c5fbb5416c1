/**
 * A worker needs no privilege: as an ordinary user without a capability it runs calls, and as root
 * it says so.
 */
import { readFile } from "node:fs/promises";
import { beforeEach, describe, expect, test } from "vitest";
import {
  asOrdinaryUser,
  crippledHostProblem,
  ordinaryUid,
} from "../../../support/sandboxes/crippled-hosts.ts";
import { WorkerProcess } from "../../../support/workers/worker-process.ts";
import {
  type WorkerSurroundings,
  surroundWorker,
} from "../../../support/workers/worker-surroundings.ts";
import { isRoot } from "../../../support/is-root.ts";

const none = "0000000000000000";

const profiles = ["restrictive", "standard", "permissive"];

describe("a worker", () => {
  let surroundings: WorkerSurroundings;

  beforeEach(async () => {
    const tools = profiles.map((profile) => {
      const entry = { module: "hostile", function: "privileges", sandbox_profile: profile };
      return [`privileges_${profile}`, entry] as const;
    });
    surroundings = await surroundWorker(Object.fromEntries(tools));
  });

  test(
    "without a capability runs calls of every profile, and needs nothing of root",
    { tags: ["promise-S6", "promise-R3"] },
    async (context) => {
      const problem = await crippledHostProblem(asOrdinaryUser);
      context.skip(problem !== undefined, problem);
      await using worker = new WorkerProcess(surroundings.environment, [], asOrdinaryUser);
      await worker.says("worker.ready");
      const status = await readFile(`/proc/${worker.child.pid}/status`, "utf8");
      if (isRoot) expect(status).toMatch(new RegExp(`^Uid:\\t${ordinaryUid}\\t`, "m"));
      for (const set of ["CapPrm", "CapEff", "CapAmb"])
        expect(status).toContain(`${set}:\t${none}`);

      await using agent = await surroundings.connectAgent();
      for (const profile of profiles) {
        expect(await agent.call({ tool: `privileges_${profile}` })).toMatchObject({
          kind: "success",
          toolResult: { self: { CapEff: none, NoNewPrivs: "1" } },
        });
      }
      expect(worker.output).not.toContain("worker.root_not_needed");
    },
  );

  test(
    "that is root says once that it need not be, and as whom sandboxes run",
    { tags: ["full", "promise-R3"] },
    async (context) => {
      context.skip(!isRoot, "needs root");
      await using worker = new WorkerProcess({ ...surroundings.environment, SANDBOX_UID: "60011" });
      await worker.says("worker.ready");
      const said = worker.output
        .split("\n")
        .filter((line) => line.includes("worker.root_not_needed"));
      expect(said.map((line) => JSON.parse(line) as object)).toEqual([
        expect.objectContaining({
          level: "info",
          sandboxUid: 60_011,
          advice: expect.stringContaining("ordinary user") as unknown,
        }),
      ]);
    },
  );

  test(
    "that is a root without capabilities says what to do instead, and does not start",
    { tags: "full" },
    async (context) => {
      context.skip(!isRoot, "needs root");
      const prefix = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
      await using worker = new WorkerProcess(surroundings.environment, [], prefix);
      expect((await worker.exited).code).toBe(78);
      expect(worker.output).toMatch(/this root may not run programs as user \d+; .*ordinary user/);
    },
  );

  test(
    "of an ordinary user with a capability says what to take away, and does not start",
    { tags: "full" },
    async (context) => {
      context.skip(!isRoot, "needs root to give a capability");
      const problem = await crippledHostProblem(asOrdinaryUser);
      context.skip(problem !== undefined, problem);
      const prefix = [
        "setpriv",
        ...["--reuid", String(ordinaryUid), "--regid", String(ordinaryUid), "--clear-groups"],
        ...["--inh-caps=-all,+net_raw", "--ambient-caps=-all,+net_raw"],
      ];
      await using worker = new WorkerProcess(surroundings.environment, [], prefix);
      expect((await worker.exited).code).toBe(78);
      expect(worker.output).toMatch(/user-namespaces is missing: .*Unexpected capabilities/);
      expect(worker.output).toMatch(/take the capabilities away/);
    },
  );
});
