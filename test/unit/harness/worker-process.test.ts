/**
 * How the harness starts workers.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { leanMemory } from "../../../harness/worker/worker-process.ts";

test("a worker has the memory settings of the image", () => {
  const dockerfile = readFileSync(new URL("../../../Dockerfile", import.meta.url), "utf8");
  const settings = Object.entries(leanMemory).map(([name, value]) => `${name}=${value}`);
  expect(dockerfile).toContain(`\nENV ${settings.join(" ")}\n`);
});
