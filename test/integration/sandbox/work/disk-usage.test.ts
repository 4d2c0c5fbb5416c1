/**
 * Tools that put more on the disk than they may in ways that make it hard to count: each ends its
 * sandbox all the same, and none holds the worker up.
 */
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import { restrictiveProfile } from "../../../../worker/sandbox/profile.ts";
import type { ExitReport } from "../../../../worker/sandbox/sandbox.ts";
import { maxDepth } from "../../../../worker/sandbox/accounting/tree-walk.ts";
import { never, openBackend, request } from "../sandbox-host.ts";
import { LoopWatch } from "../../../support/cpu-time.ts";

const MiB = 1024 * 1024;
const limits = { ...restrictiveProfile.limits, diskBytes: 64 * MiB, processes: 128 };
/**
 * CPU milliseconds for which the worker does nothing else: a look's time for files many times over.
 */
const longestStallMs = 100;

/** What every program here begins with. */
const prelude = `
import os, time
def fill(path, mebibytes):
    with open(path, "wb", buffering=0) as file:
        for _ in range(mebibytes): file.write(bytes(1 << 20))
def hide_behind(directories):
    os.makedirs("output/" + "/".join("x" * ${maxDepth - 2}))
    for number in range(directories):
        os.mkdir("output/" + "x/" * ${maxDepth - 2} + str(number))
    os.mkdir("output/seen-before")
def start_sleeping(processes):
    for _ in range(processes):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
# Twice as much as it may, for longer than samples take on a busy machine, and no trace in the end.
def take_and_give_back(directory):
    os.makedirs(directory, exist_ok=True)
    paths = [directory + b"/%d" % number for number in range(8)]
    for path in paths: fill(path, 16)
    time.sleep(50)
    for path in paths: os.truncate(path, 0)
`;

describe("what a tool puts on the disk counts", () => {
  const ways = [
    ["under names that are no text", String.raw`take_and_give_back(b"output/\xff")`],
    [
      "behind thousands of empty directories, with many processes to look at",
      `hide_behind(9500)
start_sleeping(100)
take_and_give_back(b"output/seen-before")`,
    ],
  ] as const;

  async function isEnded([, program]: (typeof ways)[number], context: TestContext): Promise<void> {
    const backend = await openBackend(context, { withoutCgroups: true });
    onTestFinished(() => backend[Symbol.asyncDispose]());
    const profile = { ...restrictiveProfile, limits };
    await using sandbox = await backend.acquire(request({ profile }), never);
    const argv = ["/usr/bin/python3", "-c", `${prelude}${program}\nprint("went on")`];
    const execution = await sandbox.start({ argv });
    using loop = new LoopWatch();
    const report: ExitReport = await execution.exited;
    expect(report).toMatchObject({
      signal: "SIGKILL",
      exceeded: { limit: "diskBytes", bound: limits.diskBytes },
      stdout: { text: "" },
    });
    expect(loop.longestMs).toBeLessThan(longestStallMs);
  }
  const usual = ways.slice(0, 1);
  test.for(usual)("%s", isEnded);
  test.for(ways.slice(1))("%s", { tags: "full", timeout: 180_000 }, isEnded);
});
