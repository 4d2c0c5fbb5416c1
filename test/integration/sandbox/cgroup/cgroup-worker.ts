/**
 * What a worker does with control groups, as a process of its own: it opens them, runs one command
 * in a group with limits, says what came of it, and leaves. It writes a line of JSON for each step.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { CgroupUsage } from "../../../../worker/sandbox/cgroup/cgroup.ts";
import { openCgroups } from "../../../../worker/sandbox/cgroup/host-cgroups.ts";
import { restrictiveProfile } from "../../../../worker/sandbox/profile.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { newId } from "../../../../worker/support/ids.ts";

/** What it is told, as JSON, by its only argument. */
export interface CgroupWorkerTask {
  readonly memoryBytes?: number;
  readonly processes?: number;
  /** Nothing is run without. */
  readonly command?: readonly string[];
  /**
   * What is done when the command has written something: everything is killed, the group is given
   * back, or nothing.
   */
  readonly then?: "kill" | "dispose" | "wait-for-ever";
}

/** Its first line. */
export interface CgroupWorkerFound {
  readonly version: 1 | 2 | undefined;
  readonly controls: Readonly<Record<string, boolean>> | undefined;
  readonly reason: string | undefined;
  readonly joinMs: number | undefined;
}

/** Its next line, when the command has ended; with `then` also when it has written something. */
export interface CgroupWorkerRan {
  readonly pid: number;
  readonly usage: CgroupUsage;
  readonly signal: string | null;
  readonly stdout: string;
}

/** Its last line, from which its own groups can be told. */
export interface CgroupWorkerLeft {
  readonly ownGroups: string;
  readonly removeFailures: readonly string[];
}

const task = JSON.parse(process.argv[2] ?? "{}") as CgroupWorkerTask;
const removeFailures: string[] = [];

const { cgroups, reason } = await openCgroups({
  clock: systemClock,
  newId,
  onRemoveFailed: (error) => void removeFailures.push(String(error)),
});
const { version, controls, joinMs } = cgroups ?? {};
say({ version, controls, reason, joinMs });
if (cgroups !== undefined && task.command !== undefined) {
  const group = await cgroups.create({ ...restrictiveProfile.limits, ...task });
  // It waits for a line, as bubblewrap does for its options.
  const gate = ["-c", 'read -r go; exec "$@"', "sh", ...task.command];
  const child = spawn("/bin/sh", gate, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const { pid = 0 } = child;
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk));
  await group.add(pid);
  child.stdin.end("go\n");
  if (task.then !== undefined) {
    await once(child.stdout, "data");
    say({ pid, usage: group.read(), signal: null, stdout });
  }
  if (task.then === "wait-for-ever") await once(process.stdin, "end");
  if (task.then === "kill") group.kill();
  if (task.then !== "dispose") await ended;
  const usage = group.read();
  // What a killed command has left, with its output open, ends here.
  await group[Symbol.asyncDispose]();
  const [, signal] = await ended;
  if (!child.stdout.closed) await once(child.stdout, "close");
  say({ pid, usage, signal, stdout });
}
await cgroups?.[Symbol.asyncDispose]();
say({ ownGroups: readFileSync("/proc/self/cgroup", "utf8"), removeFailures });

function say(line: CgroupWorkerFound | CgroupWorkerRan | CgroupWorkerLeft): void {
  console.log(JSON.stringify(line));
}
