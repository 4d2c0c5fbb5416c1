/**
 * The list of a process's children, which stays open.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import {
  childrenOf,
  exists,
  firstOf,
  openChildren,
} from "../../../../worker/sandbox/proc/processes.ts";

test("an open list names the children, and none once it is closed or the process is gone", async () => {
  const parent = spawn("/bin/sh", ["-c", "sleep 1000 & echo began; wait"]);
  await once(parent.stdout, "data");
  const pid = parent.pid ?? 0;
  const children = childrenOf(pid);
  expect(children).toHaveLength(1);

  using open = openChildren(pid);
  const closed = openChildren(pid);
  closed?.[Symbol.dispose]();
  // It has the number of the one that was closed.
  using other = openChildren(pid);
  expect([open, closed, other].map(firstOf)).toEqual([children, [], children]);

  for (const child of children) process.kill(child, "SIGKILL");
  await once(parent, "exit");
  expect(exists(pid)).toBe(false);
  expect(firstOf(open)).toEqual([]);
  expect(openChildren(pid)).toBeUndefined();
});
