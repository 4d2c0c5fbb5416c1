/**
 * Control groups of this host for tests: places that a worker can be started in, and what is left
 * there.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir, readFile, readdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type TestContext, expect, onTestFinished, vi } from "vitest";
import { CgroupFiles } from "../../../../worker/sandbox/cgroup/files.ts";
import { ownGroupV1, ownGroupV2 } from "../../../../worker/sandbox/cgroup/discovery.ts";
import { newId } from "../../../../worker/support/ids.ts";
import type {
  CgroupWorkerFound,
  CgroupWorkerLeft,
  CgroupWorkerRan,
  CgroupWorkerTask,
} from "./cgroup-worker.ts";
import { requireRoot } from "../sandbox-host.ts";

const program = fileURLToPath(new URL("cgroup-worker.ts", import.meta.url));
const patience = { timeout: 20_000, interval: 20 };
const files = new CgroupFiles();
const run = promisify(execFile);

/**
 * The group of this process in each hierarchy of version 1 that a sandbox's limits need; fewer
 * where they are not there.
 */
function ownGroupsV1(): readonly string[] {
  const directories = ["memory", "pids", "cpuacct"].flatMap((controller) => {
    try {
      return [ownGroupV1(files, controller).directory];
    } catch {
      return [];
    }
  });
  return [...new Set(directories)];
}

/**
 * Where workers are started on this host: in version 1 below the test's own groups, in version 2,
 * whose groups with controllers hold no processes, below the root. Skips the test where neither is
 * possible.
 */
export function requireCgroups(context: TestContext): readonly string[] {
  requireRoot(context);
  const v1 = ownGroupsV1();
  if (v1.length === 3) return v1;
  const passed = files.read("/sys/fs/cgroup/cgroup.subtree_control")?.split(/\s+/) ?? [];
  const isV2 = passed.includes("memory") && passed.includes("pids");
  context.skip(!isV2, "neither cgroup v1 nor v2 has memory and pids here");
  return ["/sys/fs/cgroup"];
}

/**
 * The root of version 2, and a controller of it; skips the test where this is not the host's own
 * root.
 */
export function requireRootOfV2(context: TestContext): { root: string; controller: string } {
  requireRoot(context);
  let found: ReturnType<typeof ownGroupV2> | undefined;
  try {
    found = ownGroupV2(files);
  } catch {
    // Not mounted, or not to be written to.
  }
  const controller = found?.controllers[0];
  const isRoot =
    found !== undefined && files.read(join(found.directory, "cgroup.type")) === undefined;
  context.skip(
    !isRoot || controller === undefined,
    "this is not at the root of a cgroup v2 with a controller",
  );
  return { root: found!.directory, controller: controller! };
}

/**
 * A new group below each of `parents`, removed after the test with all that is left in it; `uid`
 * gets them as a delegation.
 */
export async function freshGroups(
  parents: readonly string[],
  uid?: number,
): Promise<readonly string[]> {
  const name = `str-test-${newId()}`;
  return Promise.all(
    parents.map(async (parent) => {
      const group = join(parent, name);
      await mkdir(group);
      // A worker whose test has failed may have left processes.
      onTestFinished(() => vi.waitFor(() => removeWithAll(group), patience));
      const given = ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"];
      if (uid !== undefined)
        for (const file of given)
          await chown(join(group, file), uid, uid).catch((error: NodeJS.ErrnoException) => {
            if (error.code !== "ENOENT") throw error;
          });
      return group;
    }),
  );
}

/**
 * Kills what is in a group and in those below, and removes them. Rejects while there is something
 * left.
 */
async function removeWithAll(group: string): Promise<void> {
  for (const name of files.groupsIn(group)) await removeWithAll(join(group, name));
  // 0 would be this process's own group.
  for (const pid of files.processesIn(group)) if (pid > 0) process.kill(pid, "SIGKILL");
  await rmdir(group);
}

/** How a worker is started. */
export interface StartOptions {
  /** Groups that it is in from its first instruction on; those of the test without. */
  readonly groups?: readonly string[];
  readonly uid?: number;
  /** A shell command that runs before, in a mount namespace of its own. */
  readonly mounts?: string;
}

/** A worker of cgroup-worker.ts, or a program of the test's. */
export async function startIn(
  argv: readonly string[],
  { groups = [], uid, mounts }: StartOptions = {},
): Promise<ChildProcess & { readonly pid: number }> {
  const gate = ["/bin/sh", "-c", `read -r go; ${mounts ?? ":"} && exec "$@"`, "sh", ...argv];
  const [file = "", ...rest] = mounts === undefined ? gate : ["unshare", "--mount", ...gate];
  const child = spawn(file, rest, {
    stdio: ["pipe", "pipe", "inherit"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  for (const group of groups) await writeFile(join(group, "cgroup.procs"), String(child.pid));
  child.stdin.end("go\n");
  return child as ChildProcess & { readonly pid: number };
}

/** Starts a worker with a task; its lines, each as it comes. */
export async function startWorker(
  task: CgroupWorkerTask,
  options: StartOptions = {},
): Promise<{ child: ChildProcess & { readonly pid: number }; lines: AsyncIterator<string> }> {
  const child = await startIn([process.execPath, program, JSON.stringify(task)], options);
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  return { child, lines };
}

/** What a worker told from its start to its end. */
export interface Told {
  readonly found: CgroupWorkerFound;
  readonly ran: CgroupWorkerRan | undefined;
  readonly left: CgroupWorkerLeft;
}

/** Runs a worker to its end. */
export async function runWorker(task: CgroupWorkerTask, options: StartOptions = {}): Promise<Told> {
  const { lines } = await startWorker(task, options);
  const told: unknown[] = [];
  for (let line; !(line = await lines.next()).done;) told.push(JSON.parse(line.value));
  expect(told.length).toBeGreaterThanOrEqual(2);
  return {
    found: told[0] as CgroupWorkerFound,
    ran: told.length > 2 ? (told.at(-2) as CgroupWorkerRan) : undefined,
    left: told.at(-1) as CgroupWorkerLeft,
  };
}

/** Groups of sandboxes, and of workers, below groups. */
export async function leftBelow(groups: readonly string[]): Promise<string[]> {
  const names = await Promise.all(groups.map((group) => readdir(group)));
  return names.flat().filter((name) => /^str-(sandbox|worker)/.test(name));
}

/** The groups of a process, one for each line. */
export async function groupsOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/cgroup`, "utf8");
}

/** Has a group pass a controller on until the test is over, if it does not yet. */
export async function passOnForTest(group: string, controller: string): Promise<void> {
  const control = join(group, "cgroup.subtree_control");
  if ((await readFile(control, "utf8")).split(/\s+/).includes(controller)) return;
  await writeFile(control, `+${controller}`);
  onTestFinished(() => writeFile(control, `-${controller}`));
}

/** Whether this host has a program. */
export async function has(program: string): Promise<boolean> {
  return run(program, ["--version"]).then(
    () => true,
    () => false,
  );
}
