/**
 * What container.test.ts has of one engine, by Docker's own daemon, which is started for it. The
 * attacks are left out.
 *
 * @module-tag full
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import { root, run, userEnvironment } from "../package/processes.ts";
import { openDockerd } from "../support/containers/daemon.ts";

const timeoutMs = 20 * 60_000;

test(
  "Docker builds the image, and its containers run the demo, the doctor and a worker",
  async (context) => {
    await using docker = await openDockerd(context);
    const script = join(root, "scripts", "container.mjs");
    const env = userEnvironment({ ...docker.variables });
    const options = { timeoutMs, env };
    const { status, stdout, stderr } = await run("node", [script, "--without-attacks"], options);
    context.skip(status === 69, stderr.trim().split("\n")[0]);
    expect(stdout, stderr).toContain("building with docker on");
    expect(stdout, stdout + stderr).toContain("every row came out as expected");
    expect(status).toBe(0);
  },
  timeoutMs,
);
