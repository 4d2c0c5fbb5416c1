/**
 * A sandbox from its making to its end, beside others.
 */
import { readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Execution, type Sandbox, SandboxError } from "../../../worker/sandbox/sandbox.ts";
import {
  never,
  openDescriptors,
  request,
  runScript,
  sayReady,
  shell,
  uniqueSleep,
} from "../../integration/sandbox/sandbox-host.ts";
import { patience } from "../../support/patience.ts";
import {
  type Create,
  type OpenBackend,
  type SandboxBackendTraits,
  left,
  run,
  runs,
  startReady,
} from "./running.ts";

export function describeSandboxes(
  open: OpenBackend,
  create: Create,
  traits: SandboxBackendTraits,
): void {
  const { isolates } = traits;
  describe("a sandbox", () => {
    test("is used once", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      await runScript(sandbox, "exit 0");
      await expect(sandbox.start({ argv: ["/bin/true"] })).rejects.toThrow(SandboxError);
    });

    test("is not made for somebody who has given up", async (context) => {
      const backend = await open(context);
      const reason = new Error("gone");
      await expect(backend.acquire(request(), AbortSignal.abort(reason))).rejects.toBe(reason);
    });

    test("is not made by a backend that is closed", async (context) => {
      const backend = await create(context, onTestFinished);
      await backend[Symbol.asyncDispose]();
      await expect(backend.acquire(request(), never)).rejects.toThrow(SandboxError);
    });

    test("runs beside others, each in a work directory of its own", async (context) => {
      const backend = await open(context);
      const numbers = [1, 2, 3, 4, 5, 6];
      const reports = await Promise.all(
        numbers.map((number) => run(backend, `echo ${number} > output/n; sleep 0.1; cat output/n`)),
      );
      expect(reports.map(({ stdout }) => Number(stdout.text))).toEqual(numbers);
    });

    test("sees nothing of another, nor of the host's processes", async (context) => {
      context.skip(!isolates, "this backend isolates nothing");
      const backend = await open(context);
      const { marker, command } = uniqueSleep();
      const neighbour = await startReady(
        backend,
        `echo secret > output/note; ${sayReady}; ${command}`,
      );
      const note = join(neighbour.sandbox.workDir.path, "output", "note");
      const script = `cat '${note}'; kill -0 ${process.pid}; cat /proc/[0-9]*/cmdline`;
      const { stdout } = await run(backend, script);
      expect(stdout.text).not.toContain("secret");
      expect(stdout.text).not.toContain(marker);
      expect(await run(backend, `kill -0 ${process.pid}`)).toMatchObject({ exitCode: 1 });
    });

    test("that is given back takes what still runs in it along, and its work directory", async (context) => {
      const backend = await open(context);
      const unique = uniqueSleep();
      const { marker, command } = unique;
      const sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start(shell(`trap '' TERM; ${command} & ${command}`));
      await runs(unique, sandbox, traits);
      await sandbox[Symbol.asyncDispose]();
      expect(await left(marker, sandbox, traits)).toEqual([]);
      expect(await execution.exited).toMatchObject({ started: true, signal: "SIGKILL" });
      await vi.waitFor(
        () => expect(stat(sandbox.workDir.path)).rejects.toThrow("ENOENT"),
        patience,
      );
    });

    async function endsWhenGivenBack(context: TestContext, runCount: number): Promise<void> {
      const backend = await open(context);
      const { marker, command } = uniqueSleep();
      const executions: Execution[] = [];
      const sandboxes: Sandbox[] = [];
      for (let runNumber = 0; runNumber < runCount; runNumber++) {
        await using sandbox = await backend.acquire(request(), never);
        sandboxes.push(sandbox);
        executions.push(await sandbox.start(shell(command)));
      }
      await Promise.all(executions.map(({ exited }) => exited));
      await vi.waitFor(async () => {
        for (const sandbox of sandboxes) expect(await left(marker, sandbox, traits)).toEqual([]);
      }, patience);
    }

    const requeued = "that is given back as soon as it was started leaves no process";
    test(`${requeued}, in 2 runs`, (context) => endsWhenGivenBack(context, 2));
    test(`${requeued}, in 10 runs`, { tags: "full" }, (context) => endsWhenGivenBack(context, 10));

    async function leavesNothing(context: TestContext, runCount: number): Promise<void> {
      const backend = await open(context);
      const { command } = uniqueSleep();
      await run(backend, "exit 0");
      const before = await openDescriptors();
      for (let runNumber = 0; runNumber < runCount; runNumber++) {
        await run(backend, `${command} & exit ${runNumber % 2}`);
        await (await backend.acquire(request(), never))[Symbol.asyncDispose]();
      }
      // Fewer, where the first count met one that was about to be closed.
      await vi.waitFor(
        async () => expect(await openDescriptors()).toBeLessThanOrEqual(before),
        patience,
      );
      await vi.waitFor(async () => expect(await ownZombies()).toEqual([]), patience);
    }

    const leavesNone = "leaves no descriptor and no zombie behind, used or not";
    test(`${leavesNone}, in 2 runs`, (context) => leavesNothing(context, 2));
    test(`${leavesNone}, in 10 runs`, { tags: "full" }, (context) => leavesNothing(context, 10));
  });
}

/** Ended children of this process that nobody has waited for. */
async function ownZombies(): Promise<string[]> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(
    ids.map((id) => readFile(`/proc/${id}/stat`, "utf8").catch(() => "")),
  );
  return stats.filter((line) => {
    const [state, parent] = line.slice(line.lastIndexOf(")") + 2).split(" ");
    return state === "Z" && Number(parent) === process.pid;
  });
}
