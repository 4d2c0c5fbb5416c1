/**
 * What a command leaves, which ends with it.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, describe, expect, test } from "vitest";
import type { SandboxBackend } from "../../../worker/sandbox/sandbox.ts";
import {
  never,
  request,
  sayReady,
  shell,
  uniqueSleep,
} from "../../integration/sandbox/sandbox-host.ts";
import {
  type OpenBackend,
  type SandboxBackendTraits,
  left,
  runs,
  startReady,
  waitForever,
} from "./running.ts";

export function describeEnding(open: OpenBackend, traits: SandboxBackendTraits): void {
  describe("when a command is reported as ended, nothing of it lives", () => {
    const ways: readonly (readonly [string, (command: string) => string])[] = [
      ["a child in the background", (command) => `${command} &`],
      ["a child in a session of its own", (command) => `setsid ${command} &`],
      [
        "a child of nobody, elsewhere, that holds nothing",
        (command) => `(cd /; setsid ${command} < /dev/null > /dev/null 2>&1 &) &`,
      ],
      [
        "a child with another environment",
        (command) => `env -i setsid /bin/sh -c 'cd /; ${command}; :' &`,
      ],
      [
        "a child that calls itself what the kernel would call the dead",
        (command) => `(echo 'x) Z' > /proc/self/comm; ${command}; ${waitForever}) &`,
      ],
      [
        "a child that ignores every signal it can",
        (command) => `(trap '' TERM HUP INT; ${command}; ${waitForever}) &`,
      ],
    ];

    /** Which of them say the most, for a quick look. */
    const usual = [
      "a child of nobody, elsewhere, that holds nothing",
      "a child that ignores every signal it can",
    ];

    async function endsAlone(backend: SandboxBackend, start: (command: string) => string) {
      const unique = uniqueSleep();
      const { marker, command } = unique;
      await using sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start(
        shell(`${start(command)} while [ ! -e output/go ]; do sleep 0.05; done; exit 7`),
      );
      await runs(unique, sandbox, traits);
      await writeFile(join(sandbox.workDir.path, "output", "go"), "");
      const { exitCode } = await execution.exited;
      expect(await left(marker, sandbox, traits)).toEqual([]);
      expect(exitCode).toBe(7);
    }

    test.for(ways.filter(([way]) => usual.includes(way)))("%s", async ([, start], context) => {
      await endsAlone(await open(context), start);
    });

    test.for(ways)("%s, in 4 runs", { tags: "full" }, async ([, start], context) => {
      const backend = await open(context);
      for (let runNumber = 0; runNumber < 4; runNumber++) await endsAlone(backend, start);
    });

    async function endsStopped(context: TestContext, graceMs: number): Promise<void> {
      const backend = await open(context);
      const unique = uniqueSleep();
      const { marker, command } = unique;
      const { sandbox, execution } = await startReady(
        backend,
        `setsid ${command} & ${sayReady}; ${waitForever}`,
      );
      await runs(unique, sandbox, traits);
      await execution.stop(graceMs);
      expect(await left(marker, sandbox, traits)).toEqual([]);
    }

    const stopped = "a child in a session of its own, after a stop with";
    test(`${stopped} 0 ms`, (context) => endsStopped(context, 0));
    test(`${stopped} 200 ms`, { tags: "full" }, (context) => endsStopped(context, 200));
  });
}
