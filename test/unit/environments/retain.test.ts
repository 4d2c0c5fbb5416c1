/**
 * What stays in force while entries of a manifest come and go. Nothing is installed: environments
 * are there, or their installation fails.
 */
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { writeFacts } from "../../../worker/environments/facts.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import {
  type EnvironmentsRig,
  keyOf,
  openEnvironments,
  toolWith,
} from "../../support/packages/worker-environments.ts";
import { patience } from "../../support/patience.ts";

const never = new AbortController().signal;
const backend = {
  acquire: () => Promise.reject(new Error("no sandbox")),
  share: () => Promise.reject(new Error("no sandbox")),
};
let base: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "str-retain-"));
  // After what a test opens, which may write until it is closed.
  onTestFinished(() => rm(base, { recursive: true }));
  // Sandboxes of a worker that is root have to pass it.
  await chmod(base, 0o755);
});

/** Puts the environment of a tool where the worker looks for it. */
async function put(tool: ToolEntry): Promise<void> {
  const key = await keyOf(base, tool);
  const directory = join(base, "environments", key);
  await mkdir(directory, { recursive: true });
  await writeFacts(directory, {
    ...{ runtime: "python", title: "a", names: [], installer: "pip", interpreter: "python" },
    ...{ sizeBytes: 1, madeAt: "2026-01-01T00:00:00Z", tookMs: 1 },
  });
}

function open(): EnvironmentsRig["environments"] {
  return openEnvironments({ base, backend, installs: "background" }).environments;
}

const refuse = (environments: EnvironmentsRig["environments"], tool: ToolEntry) =>
  environments.refuse(tool, never);

describe("the packages of an entry", () => {
  const former = toolWith({ package: "former" });
  const failing = toolWith({ package: "failing" });

  test("stay in force until another one is served", async () => {
    await put(former);
    const environments = open();
    expect(await refuse(environments, former)).toBeUndefined();
    environments.retain([former], [former]);
    expect(await refuse(environments, failing)).toMatchObject({ keepsServed: true });
    environments.retain([former], [failing]);
    expect(environments.installationOf(former)).toBeDefined();
    const other = toolWith({});
    expect(await refuse(environments, other)).toBeUndefined();
    environments.retain([other], [other]);
    expect(environments.installationOf(former)).toBeUndefined();
    expect(environments.counts).toBeUndefined();
  });

  test("are all that is wanted again after an entry that failed is taken back", async () => {
    await put(former);
    const environments = open();
    expect(await refuse(environments, former)).toBeUndefined();
    await refuse(environments, failing);
    await vi.waitFor(() => expect(environments.warnings).toHaveLength(1), patience);
    // The served entry is not asked about again.
    environments.retain([former], [former]);
    expect(environments.warnings).toEqual([]);
    expect(environments.installationOf(former)).toBeDefined();
    await vi.waitFor(
      () => expect(environments.counts).toEqual({ ready: 1, installing: 0, failed: 0 }),
      patience,
    );
  });

  test.each(["wait", "background"] as const)(
    "are tried again after a failure in the background only: %s",
    async (installs) => {
      const retryMs = { baseMs: 1, capMs: 1 };
      const { environments, lines } = openEnvironments({ base, backend, installs, retryMs });
      const failures = () => lines.filter(({ event }) => event === "packages.failed");
      await refuse(environments, failing);
      if (installs === "background")
        await vi.waitFor(() => expect(failures().length).toBeGreaterThan(2), patience);
      else await new Promise((resolve) => setTimeout(resolve, 100));
      expect(failures()[0]?.["retryMs"]).toEqual(
        installs === "background" ? expect.any(Number) : undefined,
      );
      if (installs === "wait") expect(failures()).toHaveLength(1);
    },
  );
});
