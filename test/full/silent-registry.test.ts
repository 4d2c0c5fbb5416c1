/**
 * A registry that takes connections and never answers, as behind a firewall that drops packets.
 *
 * @module-tag full
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { setUpFrom } from "../package/checkout-to-set-up.ts";

test("set-up asks a registry that never answers once, and then ends with what to look at", async () => {
  const base = mkdtempSync(join(tmpdir(), "silent-registry-"));
  onTestFinished(() => rmSync(base, { recursive: true }));
  let connections = 0;
  const registry = createServer(() => (connections += 1)).listen(0, "127.0.0.1");
  onTestFinished(() => void registry.close());
  await once(registry, "listening");
  const { port } = registry.address() as AddressInfo;
  const ending = await setUpFrom(`http://127.0.0.1:${port}/`, base);
  expect(ending).toMatchObject({ status: 69 });
  expect(ending.stderr).toContain("the npm registry does not answer, and npm's cache does not");
  expect(ending.stderr).toContain("npm config get registry");
  expect(connections).toBe(1);
});
