/**
 * A bubblewrap program that tools could change is refused, and none else is.
 */
import { chmod, chown, copyFile, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, afterEach, beforeEach, describe, expect, test } from "vitest";
import { consultHere } from "../../support/doctor/consultation.ts";
import {
  asOrdinaryUser,
  crippledHostProblem,
  ordinaryUid,
} from "../../support/sandboxes/crippled-hosts.ts";
import { reachableDirectory } from "../../support/workers/rig.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { isRoot } from "../../support/is-root.ts";

const sandboxUid = 60_003;
const environment = { SANDBOX_UID: String(sandboxUid), SANDBOX_MINIMUM: "user-namespaces" };

let base: string;
beforeEach(async () => {
  base = await reachableDirectory();
});
afterEach(() => rm(base, { recursive: true, force: true }));

/** bubblewrap in a directory of its own, both with an owner. */
async function copyOf(programOwner: number, directoryOwner: number): Promise<string> {
  const directory = join(base, "bin");
  const path = join(directory, "bwrap");
  await mkdir(directory);
  await copyFile("/usr/bin/bwrap", path);
  await chmod(path, 0o755);
  await chmod(directory, 0o755);
  if (isRoot) {
    await chown(path, programOwner, programOwner);
    await chown(directory, directoryOwner, directoryOwner);
  }
  return path;
}

/** A script that starts a bubblewrap. */
async function scriptFor(program: string, owner: number): Promise<string> {
  const path = join(base, "script");
  await writeFile(path, `#!/bin/sh\nexec ${program} "$@"\n`, { mode: 0o755 });
  if (isRoot) await chown(path, owner, owner);
  return path;
}

async function consult(bwrapBin: string): Promise<readonly [number | null, string]> {
  const { code, output } = await consultHere({ ...environment, SANDBOX_BWRAP_BIN: bwrapBin });
  return [code, output];
}

async function consultAsUser(bwrapBin: string): Promise<readonly [number | null, string]> {
  const variables = { ...environment, SANDBOX_BWRAP_BIN: bwrapBin };
  await using doctor = new WorkerProcess(variables, ["doctor", "--json"], asOrdinaryUser);
  const { code } = await doctor.exited;
  return [code, doctor.output];
}

function refusal(changeable: string, uid: number): readonly [number, unknown] {
  return [
    78,
    expect.stringMatching(
      new RegExp(
        `^str-worker: SANDBOX_BWRAP_BIN: tools could change .*: user ${uid}, .* owns ${changeable} or`,
      ),
    ),
  ];
}

const accepted: readonly [number, unknown] = [0, expect.stringMatching(/^\{/)];

describe("a worker that is root", () => {
  function requireRoot(context: TestContext): void {
    context.skip(!isRoot, "needs root");
  }

  test(
    "refuses a program that the user of sandboxes owns",
    { tags: "promise-S9" },
    async (context) => {
      requireRoot(context);
      const program = await copyOf(sandboxUid, 0);
      expect(await consult(program)).toEqual(refusal(program, sandboxUid));
    },
  );

  test("refuses one that this user may write to", { tags: "full" }, async (context) => {
    requireRoot(context);
    const program = await copyOf(0, 0);
    await chmod(program, 0o777);
    expect(await consult(program)).toEqual(refusal(program, sandboxUid));
  });

  test("refuses one in a directory of this user's", { tags: "full" }, async (context) => {
    requireRoot(context);
    const program = await copyOf(0, sandboxUid);
    expect(await consult(program)).toEqual(refusal(join(base, "bin"), sandboxUid));
  });

  test("refuses one that a script of root's starts", { tags: "full" }, async (context) => {
    requireRoot(context);
    const program = await copyOf(sandboxUid, 0);
    const script = await scriptFor(program, 0);
    expect(await consult(script)).toEqual(refusal(program, sandboxUid));
  });

  test("accepts a program that is root's", async (context) => {
    requireRoot(context);
    expect(await consult(await copyOf(0, 0))).toEqual(accepted);
  });
});

describe("a worker that is an ordinary user", () => {
  async function requireUser(context: TestContext): Promise<number> {
    const problem = await crippledHostProblem(asOrdinaryUser);
    context.skip(problem !== undefined, problem);
    return isRoot ? ordinaryUid : process.getuid!();
  }

  test(
    "refuses a program of its own, which tools reach as well",
    { tags: "promise-S9" },
    async (context) => {
      const uid = await requireUser(context);
      const program = await copyOf(uid, 0);
      expect(await consultAsUser(program)).toEqual(refusal(program, uid));
    },
  );

  test(
    "accepts a script of its own that starts a program of root's: tools do not get to it",
    { tags: "full" },
    async (context) => {
      const uid = await requireUser(context);
      const script = await scriptFor("/usr/bin/bwrap", uid);
      expect(await consultAsUser(script)).toEqual(accepted);
    },
  );
});
