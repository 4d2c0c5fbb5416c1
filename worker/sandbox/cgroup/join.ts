/**
 * What it costs to join a control group, and how an operator can spare calls that.
 *
 * A process joins by being moved, and for a move the kernel has every processor pass by once (an
 * RCU grace period of `cgroup_threadgroup_rwsem`), some 10 ms, unless another process was moved
 * right before. Hosts can do without, by the mount option `favordynmods` (admin-guide/cgroup-v2.rst
 * of the kernel's documentation), for every hierarchy at once.
 */

/**
 * Milliseconds from which on it is worth a remark. Without waiting it is a fraction of one, with it
 * four and more.
 */
const noticeableMs = 2;

/** Whether calls wait for it to an extent that an operator wants to know of. */
export function isNoticeable(joinMs: number): boolean {
  return joinMs >= noticeableMs;
}

/**
 * For the operator: what calls wait, and how to spare them. Undefined where it is not worth a word.
 */
export function joinRemark(joinMs: number): string | undefined {
  if (!isNoticeable(joinMs)) return undefined;
  const ways = [
    "`mount -o remount,favordynmods /sys/fs/cgroup` on the host, outside of containers (Linux 6.0; where version 2 is mounted elsewhere, there)",
    "boot it with `cgroup_favordynmods=true` (Linux 6.7)",
  ];
  return `each call waits about ${Math.round(joinMs)} ms until it has joined its group, which is spared by ${ways.join(", or ")}`;
}
