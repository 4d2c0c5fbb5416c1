/**
 * The image is built and runs the demo, and a worker, in every way that docs/containers.md speaks
 * of, where there is an engine.
 *
 * @module-tag full
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import { root, run } from "../package/processes.ts";

/** What the script says when no container can be made here. */
const unavailable = 69;
const timeoutMs = 60 * 60_000;

test(
  "a container runs the demo and a worker without root and without any capability",
  async (context) => {
    const script = join(root, "scripts", "container.mjs");
    const { status, stdout, stderr } = await run("node", [script], { timeoutMs });
    context.skip(status === unavailable, stderr.trim().split("\n")[0]);
    expect(stdout).toContain("every row came out as expected");
    expect(status).toBe(0);
  },
  timeoutMs,
);
