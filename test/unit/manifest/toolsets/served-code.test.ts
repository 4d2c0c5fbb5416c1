/**
 * The code of toolsets that change: a call gets that of its manifest entry.
 */
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { describedByManifest } from "../../../../worker/discovery/given.ts";
import { CallRecord } from "../../../../worker/invocation/call-record.ts";
import { admit } from "../../../../worker/invocation/steps/admit.ts";
import type { AdmitTool } from "../../../../worker/manifest/availability.ts";
import { openCatalog } from "../../../../worker/manifest/catalog.ts";
import type { ToolEntry } from "../../../../worker/manifest/manifest.ts";
import { Toolsets } from "../../../../worker/manifest/toolsets/toolsets.ts";
import { leaseCode } from "../../../../worker/runners/tool-code.ts";
import { builtInProfiles } from "../../../../worker/sandbox/profile.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { newId } from "../../../../worker/support/ids.ts";
import { patience } from "../../../support/patience.ts";
import { profileNames, textOf } from "../fixtures.ts";

const { signal } = new AbortController();

/** A catalog with one toolset, whose tool is `kit__run`. */
async function openPlace(admitTool: AdmitTool = () => undefined) {
  const base = await mkdtemp(join(tmpdir(), "str-served-code-"));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const directory = join(base, "toolsets");
  const copies = join(base, "copies");
  const write = (text: string) => writeFile(join(directory, "kit", "tools.py"), text);
  await mkdir(join(directory, "kit"), { recursive: true });
  await writeFile(join(base, "m.yaml"), textOf());
  await writeFile(join(directory, "kit", "manifest.yaml"), textOf("run"));
  await write("old");
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const common = { profileNames, log, clock: systemClock, intervals: { pollMs: 10, settleMs: 10 } };
  const toolsets = await Toolsets.open({ ...common, directory, base: copies, newId }, signal);
  const path = join(base, "m.yaml");
  const catalog = await openCatalog({ ...common, path, toolsets, admit: admitTool, signal });
  onTestFinished(() => catalog[Symbol.asyncDispose]());
  const places = {
    toolsDir: "/none",
    leaseToolset: (of: NonNullable<ToolEntry["toolset"]>) => toolsets.lease(of),
  };
  const codeOf = async (tool: ToolEntry) => {
    using code = leaseCode(tool, places);
    return readFile(join(code.directory, "tools.py"), "utf8");
  };
  return { directory, copies, write, toolsets, catalog, codeOf };
}

test("an entry that is kept has its own code until the new one is served", async () => {
  let isReady = true;
  const refused: ToolEntry[] = [];
  const place = await openPlace((tool) => {
    if (isReady) return undefined;
    refused.push(tool);
    const reason = "installing";
    return Promise.resolve({ reason, publicReason: reason, keepsServed: true });
  });
  const { catalog, codeOf, write, copies } = place;
  isReady = false;
  const { revision } = catalog.manifest;
  await write("refused");
  await vi.waitFor(() => expect(refused).toHaveLength(1), patience);
  await vi.waitFor(() => expect(catalog.manifest.revision).not.toBe(revision), patience);
  expect(await codeOf(catalog.resolve("kit__run")!)).toBe("old");
  expect(await codeOf(refused[0]!)).toBe("refused");
  isReady = true;
  await write("new");
  await vi.waitFor(
    async () => expect(await codeOf(catalog.resolve("kit__run")!)).toBe("new"),
    patience,
  );
  await vi.waitFor(async () => expect(await readdir(copies)).toHaveLength(1), patience);
});

test("a call that was admitted has its code after the toolset is removed", async () => {
  const { directory, copies, toolsets, catalog, codeOf } = await openPlace();
  const parts = {
    resolve: (name: string) => catalog.resolve(name),
    holdCode: ({ toolset }: ToolEntry) => toolset && toolsets.lease(toolset),
    profiles: builtInProfiles,
    hostNetwork: "host" as const,
    defaultProfile: "standard",
    times: { defaultSeconds: 60, maxSeconds: Infinity },
    clock: systemClock,
    described: (tool: ToolEntry) => Promise.resolve(describedByManifest(tool)),
    checker: { check: () => Promise.reject(new Error("there is no schema")) },
  };
  const invocation = {
    ...{ id: "1", taskId: "1", toolName: "kit__run", args: {}, toolConfig: {} },
    caller: { appName: "a", userId: "u", sessionId: "s" },
    ...{ references: new Map(), preloaded: new Map(), timeoutSeconds: undefined },
    ...{ requestedProfile: undefined, replyTo: "reply", statusTo: undefined },
    sentAtMs: systemClock.nowMs(),
  };
  {
    const origin = { caller: "direct", mayHaveStarted: false } as const;
    const admitted = await admit(parts, invocation, origin, new CallRecord(), signal);
    using _code = admitted.code;
    await rm(join(directory, "kit"), { recursive: true });
    await vi.waitFor(() => expect(catalog.resolve("kit__run")).toBeUndefined(), patience);
    // Retaining has come to its end with the next change that is served.
    await mkdir(join(directory, "other"));
    await writeFile(join(directory, "other", "manifest.yaml"), textOf("run"));
    await vi.waitFor(() => expect(catalog.resolve("other__run")).toBeDefined(), patience);
    expect(await codeOf(admitted.tool)).toBe("old");
  }
  await vi.waitFor(async () => expect(await readdir(copies)).toHaveLength(1), patience);
});
