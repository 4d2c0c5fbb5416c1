/**
 * A command that is stopped, or ended for a limit.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  never,
  outputFile,
  request,
  sayReady,
  shell,
  uniqueSleep,
} from "../../integration/sandbox/sandbox-host.ts";
import {
  type OpenBackend,
  type SandboxBackendTraits,
  left,
  startReady,
  waitForever,
} from "./running.ts";

export function describeStopping(open: OpenBackend, traits: SandboxBackendTraits): void {
  describe("a command that is stopped", () => {
    test("is asked first, and what it does then counts", async (context) => {
      const backend = await open(context);
      const { sandbox, execution } = await startReady(
        backend,
        `trap 'echo tidied > output/bye; exit 9' TERM; ${sayReady}; ${waitForever}`,
      );
      expect(await execution.stop(10_000)).toMatchObject({ started: true, exitCode: 9 });
      expect(await outputFile(sandbox, "bye")).toBe("tidied\n");
    });

    test("is killed after its grace when it does not listen", async (context) => {
      const backend = await open(context);
      const { execution } = await startReady(backend, `trap '' TERM; ${sayReady}; ${waitForever}`);
      const startMs = performance.now();
      const report = await execution.stop(500);
      expect(performance.now() - startMs).toBeGreaterThan(490);
      expect(report).toMatchObject({ started: true, exitCode: undefined, signal: "SIGKILL" });
    });

    test("is killed without a question when there is no grace", async (context) => {
      const backend = await open(context);
      const { sandbox, execution } = await startReady(
        backend,
        `trap 'echo > output/asked' TERM; ${sayReady}; ${waitForever}`,
      );
      expect(await execution.stop(0)).toMatchObject({ started: true, exitCode: undefined });
      expect(await readdir(join(sandbox.workDir.path, "output"))).toEqual(["ready"]);
    });

    test("is stopped once, however often it is asked for", async (context) => {
      const backend = await open(context);
      const { execution } = await startReady(
        backend,
        `trap 'exit 9' TERM; ${sayReady}; ${waitForever}`,
      );
      const reports = await Promise.all([5_000, 5_000].map((graceMs) => execution.stop(graceMs)));
      reports.push(await execution.exited);
      expect(reports.map(({ exitCode }) => exitCode)).toEqual([9, 9, 9]);
    });

    test("is killed in its grace when somebody comes who gives it none", async (context) => {
      const backend = await open(context);
      const { sandbox, execution } = await startReady(
        backend,
        `trap 'echo > output/asked' TERM; ${sayReady}; ${waitForever}`,
      );
      const stopped = execution.stop(600_000);
      await outputFile(sandbox, "asked");
      const killed = { exitCode: undefined, signal: "SIGKILL" };
      expect(await execution.stop(0)).toMatchObject(killed);
      expect(await stopped).toMatchObject(killed);
    });

    test("after its end has its report", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start(shell("exit 4"));
      await execution.exited;
      expect(await execution.stop(0)).toMatchObject({ exitCode: 4 });
    });

    test("for a limit is killed, and its report names the limit that was reached first", async (context) => {
      const backend = await open(context);
      const { marker, command } = uniqueSleep();
      const { sandbox, execution } = await startReady(
        backend,
        `trap '' TERM; ${command} & ${sayReady}; ${waitForever}`,
      );
      const first = { limit: "diskBytes", bound: 10, peak: 11 } as const;
      execution.end(first);
      execution.end({ limit: "statusBytes", bound: 1, peak: 2 });
      expect(await execution.exited).toMatchObject({ exceeded: first, exitCode: undefined });
      expect(await left(marker, sandbox, traits)).toEqual([]);
    });

    test("for a limit after its end has ended by itself", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start(shell("exit 4"));
      await execution.exited;
      execution.end({ limit: "diskBytes", bound: 10, peak: 11 });
      expect(await execution.exited).toMatchObject({ exitCode: 4, exceeded: undefined });
    });
  });
}
