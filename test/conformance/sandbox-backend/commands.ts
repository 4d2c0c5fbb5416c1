/**
 * A command in a sandbox: how it ends, and what it finds.
 */
import { describe, expect, test } from "vitest";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import { inheritableDescriptors } from "../../../worker/support/inherited-descriptors.ts";
import { never, request, runScript } from "../../integration/sandbox/sandbox-host.ts";
import { type OpenBackend, run } from "./running.ts";

export function describeCommands(open: OpenBackend): void {
  describe("a command", () => {
    test.for([0, 1, 3, 127, 128, 200, 255])("ends with exit code %d", async (code, context) => {
      const backend = await open(context);
      const ending = { started: true, exitCode: code, signal: undefined, exceeded: undefined };
      expect(await run(backend, `exit ${code}`)).toMatchObject(ending);
    });

    test.for(["TERM", "KILL", "SEGV", "ABRT", "XCPU"])(
      "ends by signal SIG%s",
      async (signal, context) => {
        const backend = await open(context);
        const ending = { started: true, exitCode: undefined, signal: `SIG${signal}` };
        expect(await run(backend, `kill -${signal} $$`)).toMatchObject(ending);
      },
    );

    test("that does not exist is an exit code, and why is on stderr", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      const execution = await sandbox.start({ argv: ["/no/such/program"] });
      const report = await execution.exited;
      expect(report.exitCode).toBeGreaterThan(0);
      expect(report.stderr.text).toContain("/no/such/program");
    });

    test("has nothing in its environment but what it is given", async (context) => {
      const backend = await open(context);
      const environment = new Map([
        ["PATH", "/usr/bin:/bin"],
        ["GREETING", "two words\nand a line"],
        ["ADDRESS", "https://example.org:8080/a?b=c"],
        ["EMPTY", ""],
      ]);
      await using sandbox = await backend.acquire(request({ environment }), never);
      const execution = await sandbox.start({ argv: ["/usr/bin/env", "-0"] });
      const { stdout } = await execution.exited;
      const seen = stdout.text
        .split("\0")
        .filter((line) => line !== "" && !line.startsWith("PWD="));
      expect(seen.sort()).toEqual([...environment].map((pair) => pair.join("=")).sort());
    });

    test(
      "has no input, and no descriptors but the three",
      { tags: "promise-S3" },
      async (context) => {
        const backend = await open(context);
        const { stdout } = await run(
          backend,
          "cat; readlink /dev/fd/0; for fd in /dev/fd/*; do echo ${fd##*/}; done",
        );
        const [input, ...descriptors] = stdout.text.trim().split("\n");
        expect(input).toBe("/dev/null");
        // What the test runner itself has inherited is closed by worker/main.ts alone.
        const inherited = inheritableDescriptors().map(String);
        // The fourth is the listing itself.
        const own = descriptors.filter((descriptor) => !inherited.includes(descriptor));
        expect(own).toEqual(["0", "1", "2", "3"]);
      },
    );

    test("is under the limits that the kernel keeps", async (context) => {
      const backend = await open(context);
      await using sandbox = await backend.acquire(request(), never);
      expect(sandbox.enforcement).toMatchObject({ openFiles: "kernel", fileSizeBytes: "kernel" });
      const { stdout } = await runScript(
        sandbox,
        "ulimit -H -n; ulimit -n; ulimit -H -f; ulimit -c",
      );
      const { openFiles, fileSizeBytes } = restrictiveProfile.limits;
      const blocks = fileSizeBytes / 512;
      expect(stdout.text).toBe([openFiles, openFiles, blocks, 0, ""].join("\n"));
    });
  });
}
