/**
 * A sandbox whose memory is bounded from outside: what it may hold, and what becomes of it beyond.
 */
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import { lookMs } from "../../../worker/sandbox/memory-guard.ts";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import type { ExitReport, MemoryBound } from "../../../worker/sandbox/sandbox.ts";
import { never, openBackend, processesWith, request } from "./sandbox-host.ts";

/** Takes so many mebibytes in each of so many processes, keeps them for a while, and says so. */
const program = `
import os, sys, time
processes, mebibytes = int(sys.argv[1]), int(sys.argv[2])
for _ in range(processes - 1):
    if os.fork() == 0: break
held = b"x" * (mebibytes << 20)
time.sleep(${(20 * lookMs) / 1000})
print("held")
`;

async function take(
  context: TestContext,
  memoryBound: MemoryBound,
  processes: number,
  mebibytes: number,
): Promise<ExitReport> {
  const backend = await openBackend(context);
  onTestFinished(() => backend[Symbol.asyncDispose]());
  await using sandbox = await backend.acquire(
    request({ profile: restrictiveProfile, memoryBound }),
    never,
  );
  const argv = ["/usr/bin/python3", "-c", program, String(processes), String(mebibytes)];
  const execution = await sandbox.start({ argv });
  return await execution.exited;
}

const ended = { started: true, exitCode: 0, exceeded: undefined };

describe("a sandbox of restrictive, which has 512 MiB,", () => {
  test("that is bounded by what it holds is killed beyond, with all its processes", async (context) => {
    for (const [processes, mebibytes] of [
      [1, 600],
      [4, 150],
    ] as const) {
      const report = await take(context, "resident", processes, mebibytes);
      expect(report).toMatchObject({
        exitCode: undefined,
        signal: "SIGKILL",
        exceeded: { limit: "memoryBytes" },
      });
      expect(report.stdout.text).toBe("");
      expect(await processesWith(program.trim().slice(0, 40))).toEqual([]);
    }
  });

  test("that is bounded by what it holds may reserve and share more than that", async (context) => {
    expect(await take(context, "resident", 1, 400)).toMatchObject(ended);
    expect(await take(context, "resident", 3, 100)).toMatchObject(ended);
  });

  test("that is bounded in address space is not watched: the kernel refuses each process more", async (context) => {
    expect(await take(context, "address-space", 4, 150)).toMatchObject(ended);
    expect(await take(context, "address-space", 1, 600)).toMatchObject({
      exitCode: 1,
      exceeded: undefined,
      stderr: { text: expect.stringContaining("MemoryError") },
    });
  });

  test("says that its bound is kept, where the host shows what is held", async (context) => {
    const backend = await openBackend(context);
    onTestFinished(() => backend[Symbol.asyncDispose]());
    await using sandbox = await backend.acquire(request({ memoryBound: "resident" }), never);
    expect(sandbox.unenforced).not.toContain("resident-memory");
  });
});
