/**
 * The limits of a build: each ends it, is named, and leaves nothing behind.
 *
 * @module-tag full
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, describe, expect, test } from "vitest";
import { buildProfile } from "../../../worker/environments/build/profile.ts";
import { runStep } from "../../../worker/environments/build/run.ts";
import { Redaction } from "../../../worker/environments/registry/redaction.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { abortable } from "../../../worker/support/timeout.ts";
import { sharedBackends, temporaryDirectory } from "../../integration/sandbox/sandbox-host.ts";
import { writeSourceArchive, writeWheel } from "../../support/packages/archives.ts";
import {
  openEnvironments,
  requirePip,
  toolWith,
} from "../../support/packages/worker-environments.ts";

const MiB = 1024 * 1024;
const never = new AbortController().signal;
const backendOf = sharedBackends();

async function place(context: TestContext) {
  requirePip(context);
  const backend = await backendOf(context);
  return { backend, base: await temporaryDirectory() };
}

const builds = [
  {
    limit: "time",
    settings: { timeoutSeconds: 10 },
    build: "import time\ntime.sleep(600)",
    reason: "pip took more than 10 s",
  },
  {
    limit: "memory",
    settings: { memoryBytes: 256 * MiB },
    build: "import time\nheld = bytearray(b'x') * (1024 << 20)\ntime.sleep(600)",
    reason: "pip reached its limit of memoryBytes",
  },
  {
    limit: "disk",
    settings: { diskBytes: 48 * MiB },
    build: `
import os, tempfile, time
for number in range(20):
    with open(os.path.join(tempfile.gettempdir(), str(number)), "wb") as file:
        file.write(os.urandom(8 << 20))
time.sleep(600)`,
    reason: "pip reached its limit of diskBytes",
  },
];

describe("a build", () => {
  test.for(builds)(
    "that takes too much $limit is ended, and keeps no other one waiting",
    async ({ settings, build, reason }, context) => {
      const { backend, base } = await place(context);
      const wheels = join(base, "wheels");
      writeSourceArchive(wheels, "greedy", build);
      writeWheel(wheels, { name: "modest", version: "1.0" });
      const { environments, lines } = openEnvironments({ backend, base, settings });
      const others = openEnvironments({ backend, base }).environments;
      const [greedy, modest] = await Promise.all([
        environments.refuse(toolWith({ package: "greedy" }), never),
        others.refuse(toolWith({ package: "modest" }), never),
      ]);
      expect(modest).toBeUndefined();
      expect(greedy?.reason).toBe(`its packages could not be installed: ${reason}`);
      expect(lines.at(-1)).toMatchObject({ event: "packages.failed", reason });
      expect(await readdir(join(base, "environments/building"))).toEqual([]);
      const made = await readdir(join(base, "environments"));
      expect(made.filter((name) => name.length === 64)).toHaveLength(1);
    },
  );

  test("has its time limit while its result is copied, too", async (context) => {
    const { backend } = await place(context);
    const timeoutSeconds = 3;
    const limits = { timeoutSeconds, memoryBytes: 256 * MiB, diskBytes: 64 * MiB };
    const host = {
      ...{ backend, clock: systemClock, timeoutSeconds, profile: buildProfile(limits) },
      deadline: AbortSignal.timeout(timeoutSeconds * 1000),
    };
    const step = {
      ...{ title: "pip", argv: ["/bin/true"], environment: new Map<string, string>() },
      ...{ shares: [], mounts: [], files: new Map<string, string>(), redaction: new Redaction([]) },
    };
    const endless = new Promise<never>(() => undefined);
    await expect(
      runStep(host, step, (_output, signal) => abortable(endless, signal), never),
    ).rejects.toThrow("pip took more than 3 s");
  });
});
