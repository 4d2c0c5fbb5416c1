/**
 * The gVisor backend, held to the contract of every sandbox backend, with Debian's runsc.
 */
import { release } from "node:os";
import { basename } from "node:path";
import { describe, expect, test } from "vitest";
import { restrictiveProfile } from "../../worker/sandbox/profile.ts";
import { shared } from "../support/shared.ts";
import { openGvisorHere } from "../support/containers/gvisor-backend.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";
import { run } from "./sandbox-backend/running.ts";

describe("with Debian's runsc", { tags: "full" }, () => {
  describeSandboxBackend("gvisor", (context, whenOver) => openGvisorHere(context, {}, whenOver), {
    isolates: true,
    hasStdin: true,
    nameOnHost: ({ workDir }) => basename(workDir.path),
  });

  describe("a sandbox of gVisor", () => {
    const open = shared((context, whenOver) => openGvisorHere(context, {}, whenOver));

    test("has a kernel of its own", async (context) => {
      const backend = await open(context);
      const { stdout } = await run(backend, "uname -r");
      expect(stdout.text.trim()).toMatch(/^\d+\.\d+/);
      expect(stdout.text.trim()).not.toBe(release());
    });

    test("has no more processes than its limit", async (context) => {
      const backend = await open(context);
      const script = "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); echo $i; done";
      const { stdout, stderr, exitCode } = await run(backend, script);
      expect(stderr.text).toContain("Cannot fork");
      expect(exitCode).toBe(2);
      expect(Number(stdout.text.trim().split("\n").at(-1))).toBeLessThan(32);
    });
  });

  describe.for([false, true])("without control groups: %s", (withoutCgroups) => {
    const open = shared((context, whenOver) =>
      openGvisorHere(context, { withoutCgroups }, whenOver),
    );

    test("memory is bounded as the facts say", async (context) => {
      const backend = await open(context);
      const script = "exec python3 -c 'x = bytearray(2**30); import time; time.sleep(60)'";
      const { exceeded } = await run(backend, script, { memoryBound: "resident" });
      expect(exceeded).toMatchObject({ limit: "memoryBytes" });
    });

    test("processor time is bounded", async (context) => {
      const backend = await open(context);
      const { limits } = restrictiveProfile;
      const profile = { ...restrictiveProfile, limits: { ...limits, cpuSeconds: 3 } };
      const { exceeded } = await run(backend, "while :; do :; done", { profile });
      expect(exceeded).toMatchObject({ limit: "cpuSeconds" });
    });
  });
});
