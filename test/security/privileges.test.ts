/**
 * A tool has no privileges, and no way to gain one: every attempt is made, under every profile.
 */
import { readFile, readdir } from "node:fs/promises";
import { relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { builtInProfiles } from "../../worker/sandbox/profile.ts";
import { type Rig, startRig } from "../support/workers/rig.ts";
import { testPerProfile } from "../support/sandboxes/per-profile.ts";
import { patience } from "../support/patience.ts";
import { quickPlace } from "../support/sandboxes/quick-place.ts";
import { isRoot } from "../support/is-root.ts";

const profiles = [...builtInProfiles.keys()];
const none = "0000000000000000";

describe("a tool", () => {
  let rig: Rig;

  beforeAll(async () => {
    const perProfile = profiles.flatMap((profile) =>
      ["privileges", "attempts"].map((name) => [
        `${name}_${profile}`,
        { module: "hostile", function: name, sandbox_profile: profile },
      ]),
    );
    rig = await startRig({
      tools: {
        ...Object.fromEntries(perProfile),
        stops_first_process: { module: "hostile", function: "stops_first_process" },
        sleeps: { function: "sleeps" },
      },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  async function result(tool: string): Promise<Record<string, unknown>> {
    const answer = await rig.call(tool);
    if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
    return answer.toolResult;
  }

  testPerProfile(
    "has no capability and can gain none under %s",
    { tags: "promise-S4" },
    async (profile) => {
      const nobody = {
        Uid: "65534\t65534\t65534\t65534",
        Gid: "65534\t65534\t65534\t65534",
        Groups: isRoot ? "" : expect.stringMatching(/^(65534 ?)*$/),
        CapInh: none,
        CapPrm: none,
        CapEff: none,
        CapBnd: none,
        CapAmb: none,
        NoNewPrivs: "1",
      };
      // The kernel lets only root drop supplementary groups: in the sandbox they are 65534.
      // bubblewrap's own process in there could be made to do what it may do, so it must not be
      // able to do more.
      expect(await result(`privileges_${profile}`)).toEqual({ self: nobody, "1": nobody });
    },
  );

  testPerProfile(
    "can make no namespace, mount or device and lift no limit under %s",
    { tags: "promise-S4" },
    async (profile) => {
      const outcomes = await result(`attempts_${profile}`);
      expect(Object.keys(outcomes).length).toBeGreaterThan(20);
      expect(Object.entries(outcomes).filter(([, outcome]) => outcome === "done")).toEqual([]);
    },
  );

  test(
    "runs on the host as a user without privileges, also when the worker is root",
    { tags: "promise-S6" },
    async (context) => {
      if (!isRoot) context.skip("needs a worker that is root");
      const running = rig.call("sleeps", { seconds: 4 });
      const users = await vi.waitFor(async () => {
        const found = await usersOfSandboxes(rig);
        expect(found.length).toBeGreaterThan(0);
        return found;
      }, patience);
      expect(new Set(users)).toEqual(new Set([String(rig.config.sandbox.uid)]));
      expect(await running).toMatchObject({ kind: "success" });
    },
  );

  test(
    "that holds the first process of its sandbox is ended at its time limit all the same",
    { tags: "promise-E4" },
    async () => {
      expect(await rig.call("stops_first_process", {}, { timeoutSeconds: 1 })).toMatchObject({
        kind: "timed-out",
      });
      expect(await usersOfSandboxes(rig)).toEqual([]);
    },
  );
});

/**
 * The host's user ids of all processes in sandboxes of this rig: those that have its work directory
 * mounted.
 */
async function usersOfSandboxes(rig: Rig): Promise<readonly string[]> {
  const users: string[] = [];
  // As the file system has it that the directory is on.
  const workDir = relative(quickPlace, rig.config.sandbox.workDir);
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const mounts = await readFile(`/proc/${pid}/mountinfo`, "utf8").catch(() => "");
    if (!mounts.includes(`/${workDir}/worker-`)) continue;
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    const user = /^Uid:\t(\d+)\t/m.exec(status)?.[1];
    if (user !== undefined) users.push(user);
  }
  return users;
}
