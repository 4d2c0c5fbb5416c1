/**
 * What the manifest says of one tool in place of its profile: limits, network, mounts, devices.
 */
import { accessSync, constants, statSync } from "node:fs";
import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { slowPlace } from "../../support/sandboxes/quick-place.ts";
import {
  type Rig,
  type RigTool,
  manifestText,
  nodeTool,
  reachableDirectory,
  startRig,
} from "../../support/workers/rig.ts";
import { loggedFacts } from "../../support/workers/kept-log.ts";

const MiB = 1024 * 1024;
const standard = builtInProfiles.get("standard")!;

/** A device that anybody may open, and that no sandbox has of its own. */
const device = ["/dev/fuse", "/dev/net/tun", "/dev/vsock"].find((path) => {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return (statSync(path).mode & 0o006) === 0o006;
  } catch {
    return false;
  }
});

const tool = (name: string, more: Partial<RigTool> = {}): RigTool => ({
  module: "looking",
  function: name,
  ...more,
});

let base: string;
let rig: Rig;

beforeAll(async () => {
  base = await reachableDirectory(slowPlace);
  await mkdir(join(base, "allowed/models"), { recursive: true });
  await mkdir(join(base, "outside"));
  await writeFile(join(base, "allowed/models/weights.txt"), "0.5");
  await writeFile(join(base, "outside/secret.txt"), "hidden");
  await symlink(join(base, "outside"), join(base, "allowed/out"));
  const models = { source: join(base, "allowed/models"), target: "/data/models" };
  rig = await startRig({
    tools: {
      plain: tool("limits"),
      shared: tool("limits", { network: "host" }),
      bounded: tool("limits", { limits: { memory_mb: 2048, open_files: 77 }, network: "none" }),
      opened: tool("limits", { sandbox_profile: "restrictive", network: "host" }),
      heap: nodeTool("heap.js", "heap", { limits: { memory_mb: 400 } }),
      reads: tool("read", { mounts: [models] }),
      reads_one: tool("read", {
        mounts: [{ source: join(base, "allowed/models/weights.txt"), target: "/opt/w.txt" }],
      }),
      at_its_place: tool("read", { mounts: [{ source: join(base, "allowed/models") }] }),
      elsewhere: tool("read", {
        mounts: [{ source: join(base, "outside"), target: "/data" }],
      }),
      by_link: tool("read", { mounts: [{ source: join(base, "allowed/out"), target: "/data" }] }),
      missing: tool("read", { mounts: [{ source: join(base, "allowed/later"), target: "/data" }] }),
      ...(device !== undefined && { device: tool("open_device", { devices: [device] }) }),
      no_device: tool("open_device"),
      other_device: tool("open_device", { devices: ["/dev/no-such-device"] }),
      disk: tool("open_device", { devices: ["/dev/disk"] }),
    },
    nodeFiles: {
      "heap.js": "export const heap = () => ({ flags: process.execArgv });\n",
    },
    environment: {
      SANDBOX_ALLOWED_MOUNTS: join(base, "allowed"),
      ...(device !== undefined && { SANDBOX_ALLOWED_DEVICES: device }),
    },
  });
});
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  await rm(base, { recursive: true, force: true });
});

/** Why a tool is not served, as the log has it. */
function refusalOf(name: string): string | undefined {
  const refusals = loggedFacts(rig.logLines, "tool.not_served");
  return refusals.find(({ tool }) => tool === name)?.["reason"] as string | undefined;
}

describe("limits and network of a tool", () => {
  const plain = {
    memory: standard.limits.memoryBytes,
    open_files: standard.limits.openFiles,
    processes: standard.limits.processes,
    has_network: false,
  };

  test("hold in place of its profile's, wider or tighter, and for it alone", async () => {
    expect(await rig.call("plain")).toMatchObject({ toolResult: plain });
    expect(await rig.call("shared")).toMatchObject({ toolResult: { ...plain, has_network: true } });
    expect(await rig.call("bounded")).toMatchObject({
      toolResult: { ...plain, memory: 2048 * MiB, open_files: 77 },
    });
    expect(await rig.call("opened")).toMatchObject({
      toolResult: { memory: 512 * MiB, has_network: true },
    });
  });

  test("are what the answer says, under the profile's name", async () => {
    const answer = await rig.call("bounded");
    expect(answer).toMatchObject({
      response: {
        result: {
          execution: {
            profile: "standard",
            limits_enforced: { memory: { bound: 2048 * MiB }, open_files: { bound: 77 } },
          },
        },
      },
    });
  });

  test("decide the heap of a Node tool", async () => {
    const answer = await rig.call("heap");
    expect(answer).toMatchObject({
      toolResult: { flags: expect.arrayContaining(["--max-old-space-size=300"]) as string[] },
    });
  });
});

describe("a mount of a tool", () => {
  test.each([
    ["reads", "/data/models/weights.txt"],
    ["reads_one", "/opt/w.txt"],
  ])("shows what is there, directory or file: %s", async (name, path) => {
    expect(await rig.call(name, { path })).toMatchObject({ toolResult: { text: "0.5" } });
  });

  test("is where it is on the host when the manifest names no other place", async () => {
    const path = join(base, "allowed/models/weights.txt");
    expect(await rig.call("at_its_place", { path })).toMatchObject({ toolResult: { text: "0.5" } });
    expect(await rig.call("reads", { path })).toMatchObject({ toolResult: { text: "ENOENT" } });
  });

  test("stays when a request tightens the profile", async () => {
    const answer = await rig.call(
      "reads",
      { path: "/data/models/weights.txt" },
      { profile: "restrictive" },
    );
    expect(answer).toMatchObject({ toolResult: { text: "0.5" } });
    expect(answer).toHaveProperty("response.result.execution.profile", "restrictive");
  });

  test("that is not allowed keeps its tool from being served, with the reason", async () => {
    const not = "is not allowed by SANDBOX_ALLOWED_MOUNTS";
    expect(refusalOf("elsewhere")).toBe(`${join(base, "outside")} ${not}`);
    expect(refusalOf("by_link")).toBe(
      `${join(base, "allowed/out")} is a link to ${join(base, "outside")}, which ${not}`,
    );
  });

  test("that is missing keeps its tool from being served, until it is there", async () => {
    const path = join(base, "allowed/later");
    expect(refusalOf("missing")).toBe(`${path} is not there`);
    await mkdir(path);
    await writeFile(join(path, "late.txt"), "late");
    // Any change of the manifest asks anew about what was refused.
    const manifest = await readFile(rig.manifestPath, "utf8");
    await writeFile(rig.manifestPath, manifest.replace('"version": 1', '"version":  1'));
    await vi.waitFor(
      () => {
        const last = rig.logLines.findLast((line) => line.includes("manifest.loaded"));
        expect(last).toContain('"added":["missing"]');
      },
      { timeout: 15_000 },
    );
    await rig.agent.whenServed("missing", AbortSignal.timeout(30_000));
    expect(await rig.call("missing", { path: "/data/late.txt" })).toMatchObject({
      toolResult: { text: "late" },
    });
  });
});

describe("a device of a tool", () => {
  test("can be opened by it, and by no other", async (context) => {
    context.skip(device === undefined, "this host has no device that anybody may open");
    expect(await rig.call("device", { path: device! })).toMatchObject({
      toolResult: { opened: "done" },
    });
    expect(await rig.call("no_device", { path: device! })).toMatchObject({
      toolResult: { opened: "ENOENT" },
    });
  });

  test("that is missing or not allowed keeps its tool from being served, with the reason", () => {
    expect(refusalOf("other_device")).toBe("/dev/no-such-device is not there");
    expect(refusalOf("disk")).toMatch(
      /^\/dev\/disk is (?:not there|not allowed by SANDBOX_ALLOWED_DEVICES)$/,
    );
  });
});

test("a manifest with a mount in the sandbox's own place is refused with the place", async () => {
  const tools = { x: tool("read", { mounts: [{ source: base, target: "/usr/lib/x" }] }) };
  await writeFile(rig.manifestPath, manifestText(tools));
  await vi.waitFor(
    () => {
      const last = rig.logLines.findLast((line) => line.includes("manifest.unusable"));
      expect(last).toContain("is, holds, or lies in a directory that the sandbox has of its own");
    },
    { timeout: 15_000 },
  );
});
