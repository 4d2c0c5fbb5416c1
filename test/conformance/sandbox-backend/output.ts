/**
 * What a command prints.
 */
import { describe, expect, test } from "vitest";
import { maxOutputBytes } from "../../../worker/sandbox/subprocess.ts";
import { never, request, shell } from "../../integration/sandbox/sandbox-host.ts";
import { type OpenBackend, run } from "./running.ts";

export function describeOutput(open: OpenBackend): void {
  describe("the output of a command", () => {
    test("is kept apart by stream, of its children too", async (context) => {
      const backend = await open(context);
      expect(
        await run(backend, "(sleep 0.05; echo late) & echo out; echo err >&2; wait"),
      ).toMatchObject({
        stdout: { text: "out\nlate\n", droppedBytes: 0 },
        stderr: { text: "err\n", droppedBytes: 0 },
      });
    });

    test(
      "is kept to its end, and the rest is counted and holds nobody up",
      { tags: "promise-O6" },
      async (context) => {
        const backend = await open(context);
        const bytes = 20_000_000;
        const { exitCode, stdout, stderr } = await run(
          backend,
          `head -c ${bytes} /dev/zero; echo; echo end; head -c ${bytes} /dev/zero >&2`,
        );
        expect(exitCode).toBe(0);
        expect(stdout.text).toHaveLength(maxOutputBytes);
        expect(stdout.text.endsWith("\0\nend\n")).toBe(true);
        expect(stdout.droppedBytes).toBe(bytes + "\nend\n".length - maxOutputBytes);
        expect(stderr.droppedBytes).toBe(bytes - maxOutputBytes);
      },
    );

    test("is handed on as it comes, from the first byte", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start(shell("echo first; echo aside >&2; cat input/go"));
      const heard = { stdout: "", stderr: "" };
      execution.onOutput((stream, chunk) => (heard[stream] += Buffer.from(chunk).toString()));
      await execution.exited;
      expect(heard.stdout).toBe("first\n");
      expect(heard.stderr).toMatch(/^aside\ncat: .+\n$/);
    });

    test("that is no text does no harm", async (context) => {
      const backend = await open(context);
      const { stdout } = await run(backend, "printf 'a\\377\\376b'");
      expect(stdout.text).toBe("a\ufffd\ufffdb");
    });
  });
}
