/**
 * Promises of SECURITY.md about what the manifest gives a single tool: it is no more than the
 * operator allows, and a request makes none of it more.
 */
import { chmod, mkdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { CallResult } from "../../harness/agent.ts";
import {
  type Rig,
  type RigTool,
  nodeTool,
  reachableDirectory,
  startRig,
} from "../support/workers/rig.ts";
import { loggedFacts } from "../support/workers/kept-log.ts";

const MiB = 1024 * 1024;
const marker = "only in the neighbour's source";

const tool = (name: string, more: Partial<RigTool> = {}): RigTool => ({
  module: "looking",
  function: name,
  ...more,
});

/** Imports a neighbour when it can, and looks for its text in everything below a directory. */
const curious = `import fs from "node:fs";
await import("./neighbour.ts").catch(() => undefined);
export function seeks({ text }: { text: string }): object {
  const below = (place: string) => fs.existsSync(place)
    ? fs.readdirSync(place, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
        .map((entry) => \`\${entry.parentPath}/\${entry.name}\`)
    : [];
  const holds = (file: string) => fs.readFileSync(file).includes(text);
  const compiled = below("/sandbox/compile-cache");
  return { sources: below("/tools/node").some(holds), compiled: compiled.some(holds), isCompiled: compiled.length > 0 };
}
`;
const neighbour = `export const text = ${JSON.stringify(marker)};\nexport const say = () => text;\nsay();\n`;

let base: string;
let rig: Rig;

beforeAll(async () => {
  base = await reachableDirectory();
  await mkdir(join(base, "allowed/one"), { recursive: true });
  await mkdir(join(base, "secret"));
  await writeFile(join(base, "allowed/one/data.txt"), "data");
  await writeFile(join(base, "secret/data.txt"), "secret");
  // Whoever may, by permissions alone, write.
  await chmod(join(base, "allowed/one"), 0o777);
  await chmod(join(base, "allowed/one/data.txt"), 0o666);
  await symlink(join(base, "allowed/one"), join(base, "allowed/current"));
  const one = { source: join(base, "allowed/one"), target: "/data" };
  rig = await startRig({
    tools: {
      reads: tool("read", {
        mounts: [{ source: join(base, "allowed/current"), target: "/data" }],
      }),
      writes: tool("write", { mounts: [one], sandbox_profile: "permissive" }),
      kernel_log: tool("open_device", { devices: ["/dev/kmsg"] }),
      secret: tool("read", { mounts: [{ source: join(base, "secret"), target: "/data" }] }),
      climbs: tool("read", { mounts: [{ source: base, target: "/data" }] }),
      tight: tool("limits", { limits: { memory_mb: 200, open_files: 50 }, network: "none" }),
      open: tool("limits", {
        sandbox_profile: "restrictive",
        limits: { memory_mb: 900, open_files: 50 },
        network: "host",
      }),
      alone: nodeTool("curious.ts", "seeks", { isolate: true }),
      together: nodeTool("curious.ts", "seeks"),
    },
    nodeFiles: { "curious.ts": curious, "neighbour.ts": neighbour },
    environment: { SANDBOX_ALLOWED_MOUNTS: join(base, "allowed") },
  });
});
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  await rm(base, { recursive: true, force: true });
});

function resultOf(answer: CallResult): Record<string, unknown> {
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
  return answer.toolResult;
}

describe("a tool with a mount", () => {
  test("can change nothing in it, also under permissive", { tags: "promise-S23" }, async () => {
    const before = await stat(join(base, "allowed/one/data.txt"));
    const refused = { open: "EROFS", chmod: "EROFS", rename: "EROFS", remove: "EROFS" };
    expect(resultOf(await rig.call("writes", { path: "/data/data.txt" }))).toMatchObject(refused);
    expect(resultOf(await rig.call("writes", { path: "/data" }))).toMatchObject({
      create: "EROFS",
      chmod: "EROFS",
    });
    const after = await stat(join(base, "allowed/one/data.txt"));
    expect([after.mode, after.mtimeMs]).toEqual([before.mode, before.mtimeMs]);
    expect(await readFile(join(base, "allowed/one/data.txt"), "utf8")).toBe("data");
  });

  test(
    "is not led elsewhere by a link that is exchanged after it was served",
    { tags: "promise-S23" },
    async () => {
      const path = "/data/data.txt";
      expect(resultOf(await rig.call("reads", { path }))).toEqual({ text: "data" });
      await exchange(join(base, "secret"));
      const answer = await rig.call("reads", { path });
      expect(answer).toMatchObject({ kind: "error", code: "TOOL_NOT_AVAILABLE" });
      expect(JSON.stringify(answer)).not.toContain(base);
      await exchange(join(base, "allowed/one"));
      expect(resultOf(await rig.call("reads", { path }))).toEqual({ text: "data" });
    },
  );

  async function exchange(target: string): Promise<void> {
    await symlink(target, join(base, "allowed/next"));
    await rename(join(base, "allowed/next"), join(base, "allowed/current"));
  }
});

test(
  "a tool that wants of the host what the operator does not allow is not served",
  { tags: "promise-S23" },
  () => {
    const refusals = loggedFacts(rig.logLines, "tool.not_served");
    const reasons = new Map(refusals.map(({ tool: name, reason }) => [name, reason]));
    expect(Object.fromEntries(reasons)).toEqual({
      kernel_log: "/dev/kmsg is not allowed by SANDBOX_ALLOWED_DEVICES",
      secret: `${join(base, "secret")} is not allowed by SANDBOX_ALLOWED_MOUNTS`,
      climbs: `${base} is not allowed by SANDBOX_ALLOWED_MOUNTS`,
    });
  },
);

describe("a request", () => {
  const tight = { memory: 200 * MiB, open_files: 50, has_network: false };

  test.each(["restrictive", "standard", "permissive"])(
    "for %s widens nothing that the manifest says of the tool",
    { tags: "promise-S21" },
    async (profile) => {
      expect(resultOf(await rig.call("tight", {}, { profile }))).toMatchObject(tight);
    },
  );

  test(
    "for restrictive takes away what the manifest adds to a profile, and keeps what it takes",
    { tags: "promise-S21" },
    async () => {
      expect(resultOf(await rig.call("open"))).toMatchObject({
        ...{ memory: 900 * MiB, open_files: 50, has_network: true },
      });
      expect(resultOf(await rig.call("open", {}, { profile: "restrictive" }))).toMatchObject({
        ...{ memory: 512 * MiB, open_files: 50, has_network: false },
      });
    },
  );
});

test(
  "an isolated tool finds no other module, neither its source nor its compiled code",
  { tags: "promise-S24" },
  async () => {
    const compiledResult = async (name: string) =>
      vi.waitFor(
        async () => {
          const result = resultOf(await rig.call(name, { text: marker }));
          expect(result).toMatchObject({ isCompiled: true });
          return result;
        },
        { timeout: 30_000, interval: 200 },
      );
    expect(await compiledResult("together")).toMatchObject({ sources: true, compiled: true });
    expect(await compiledResult("alone")).toMatchObject({ sources: false, compiled: false });
  },
);
