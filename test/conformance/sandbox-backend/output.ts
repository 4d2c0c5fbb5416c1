/**
 * What a command prints.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { maxOutputBytes } from "../../../worker/sandbox/subprocess.ts";
import { never, request, shell } from "../../integration/sandbox/sandbox-host.ts";
import { type OpenBackend, type SandboxBackendTraits, run } from "./running.ts";

export function describeOutput(open: OpenBackend, { hasStdin }: SandboxBackendTraits): void {
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

    test("is a stream from the first byte to the end", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start(shell("echo first; echo aside >&2; cat input/go"));
      const [stdout, stderr] = await Promise.all([text(execution.stdout), text(execution.stderr)]);
      expect(stdout).toBe("first\n");
      expect(stderr).toMatch(/^aside\ncat: .+\n$/);
    });

    test("waits for its reader, and arrives whole", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      const bytes = 8_000_000;
      const { stdout, exited } = await sandbox.start(
        shell(`head -c ${bytes} /dev/zero; touch output/written`),
      );
      const written = join(sandbox.workDir.path, "output", "written");
      let read = 0;
      for await (const chunk of stdout) {
        // The buffers on the way, a megabyte of Docker's engine among them, take less than half
        // of the output.
        if (read === 0) expect(existsSync(written)).toBe(false);
        read += (chunk as Buffer).byteLength;
      }
      expect(read).toBe(bytes);
      expect(await exited).toMatchObject({ exitCode: 0 });
    });

    test("is empty without standard input", async (context) => {
      const backend = await open(context);
      expect((await run(backend, "cat; echo $?")).stdout.text).toBe("0\n");
    });

    test("answers standard input", async (context) => {
      context.skip(!hasStdin, "idle commands wait on it for their call");
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      const launch = shell("read line; echo got $line; cat");
      const { stdin, stdout, exited } = await sandbox.start({ ...launch, hasStdin: true });
      stdin!.write("one\n");
      const answer = stdout[Symbol.asyncIterator]();
      expect(String((await answer.next()).value)).toBe("got one\n");
      stdin!.end("two\n");
      expect(String((await answer.next()).value)).toBe("two\n");
      expect((await exited).exitCode).toBe(0);
    });

    test("that is no text does no harm", async (context) => {
      const backend = await open(context);
      const { stdout } = await run(backend, "printf 'a\\377\\376b'");
      expect(stdout.text).toBe("a\ufffd\ufffdb");
    });
  });
}
