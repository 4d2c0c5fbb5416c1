/**
 * The list of a process's children, which stays open.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { OpenChildren, childrenOf, exists } from "../../../../worker/sandbox/proc/processes.ts";

test("a list shows who is there at each look, and nobody when it is closed or the process gone", async () => {
  const parent = spawn("/bin/sh", ["-c", "sleep 1000 & echo began; wait"]);
  await once(parent.stdout, "data");
  const pid = parent.pid ?? 0;
  const children = childrenOf(pid);
  expect(children).toHaveLength(1);

  using open = OpenChildren.open(pid);
  const closed = OpenChildren.open(pid);
  closed?.[Symbol.dispose]();
  // It has the number of the one that was closed.
  using other = OpenChildren.open(pid);
  expect([open?.first, closed?.first, other?.first]).toEqual([children, [], children]);

  for (const child of children) process.kill(child, "SIGKILL");
  await once(parent, "exit");
  expect(exists(pid)).toBe(false);
  expect(open?.first).toEqual([]);
  expect(OpenChildren.open(pid)).toBeUndefined();
});
