/**
 * What joining a control group costs, and how an operator can save it.
 *
 * A process joins by being moved, and the kernel waits until all processors have passed by (an RCU
 * grace period of `cgroup_threadgroup_rwsem`), some 10 ms, unless another process was moved right
 * before. The mount option `favordynmods` (admin-guide/cgroup-v2.rst) avoids it.
 */
import type { Clock } from "../../support/clock.ts";

/** Milliseconds that are worth a remark: without waiting it is a fraction of one, else four. */
const noticeableMs = 2;
/** Times that joining is timed while it seems long: the processors may have been busy. */
const maxTimings = 3;
/** Milliseconds before each: right after a move the next one is quick on every host. */
const timingPauseMs = 50;

/** The least of some times that `join` took, in milliseconds. */
export async function timeJoin(
  join: () => Promise<number>,
  clock: Pick<Clock, "sleep">,
  signal: AbortSignal,
): Promise<number> {
  let leastMs = Infinity;
  for (let times = 0; times < maxTimings && leastMs >= noticeableMs; times++) {
    await clock.sleep(timingPauseMs, signal);
    leastMs = Math.min(leastMs, await join());
  }
  return leastMs;
}

/** For the operator: what calls wait, and how to save it; undefined where it is not noticeable. */
export function joinRemark(joinMs: number): string | undefined {
  if (joinMs < noticeableMs) return undefined;
  const ways = [
    "`mount -o remount,favordynmods /sys/fs/cgroup` on the host, outside of containers (Linux 6.0; where version 2 is mounted elsewhere, there)",
    "boot it with `cgroup_favordynmods=true` (Linux 6.7)",
  ];
  return `each call waits about ${Math.round(joinMs)} ms until it has joined its group, which is spared by ${ways.join(", or ")}`;
}
