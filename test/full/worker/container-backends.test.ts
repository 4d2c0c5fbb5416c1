/**
 * Tools of a worker in containers of gVisor and of containerd: by their profiles alone.
 *
 * @module-tag full
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir, release } from "node:os";
import { join } from "node:path";
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import { containerdHere } from "../../support/containers/containerd-backend.ts";
import { runscProgram } from "../../support/containers/gvisor-backend.ts";
import { type RigTool, nodeTool, startRig } from "../../support/workers/rig.ts";

const files = {
  "calls.py": `
import os

def add(a, b):
    return {"sum": a + b}

def look(ctx):
    ctx.send_status("looking")
    ctx.save_artifact("note.txt", b"from inside")
    return {"kernel": os.uname().release, "uid": os.getuid(), "files": sorted(os.listdir("/sandbox/work"))}
`,
};
const nodeFiles = {
  "look.ts":
    'import { release } from "node:os";\nexport const look = async () => ({ kernel: release() });\n',
};
const code = `
sums = [await tools.add(a=n, b=n) for n in range(3)]
__out = [each["sum"] for each in sums]`;

const backends = [
  {
    backend: "gvisor",
    hasOwnKernel: true,
    settings: async (context: TestContext) => ({ SANDBOX_RUNSC_BIN: await runscProgram(context) }),
  },
  {
    backend: "containerd",
    hasOwnKernel: false,
    settings: async (context: TestContext) => {
      const { ctrBin, address } = await containerdHere(context);
      return { SANDBOX_CTR_BIN: ctrBin, SANDBOX_CONTAINERD_ADDRESS: address };
    },
  },
];

describe("a profile's backend", () => {
  test.for(backends)(
    "$backend runs tools, which have statuses, files and gateways",
    async (way, context) => {
      const { backend, hasOwnKernel, settings } = way;
      const variables = await settings(context);
      const directory = await mkdtemp(join(tmpdir(), "str-profiles-"));
      onTestFinished(() => rm(directory, { recursive: true, force: true }));
      const profilesFile = join(directory, "profiles.json");
      const profiles = { contained: { extends: "restrictive", backend } };
      await writeFile(profilesFile, JSON.stringify({ version: 1, profiles }));
      const contained = { sandbox_profile: "contained" };
      const look: RigTool = { module: "calls", function: "look", ...contained };
      const add: RigTool = { module: "calls", function: "add", allowed_callers: ["programmatic"] };
      const gateway = { tools: ["add"] };
      await using rig = await startRig({
        tools: {
          ...{ look, add },
          node_look: nodeTool("look.ts", "look", contained),
          run: { runtime: "code", languages: ["python"], gateway, ...contained },
          reaching: { ...look, network: "public" },
        },
        ...{ files, nodeFiles },
        environment: { ...variables, SANDBOX_PROFILES_FILE: profilesFile },
      });
      const { userId, sessionId } = rig.scope;
      const who = { userId, sessionId, timeoutSeconds: 30 };
      const startMs = performance.now();
      const statuses: string[] = [];
      const answer = await rig.agent.call(
        { tool: "look", ...who },
        { onStatus: (status) => statuses.push(status) },
      );
      const takenMs = performance.now() - startMs;
      console.log(backend, Math.round(takenMs), "ms");
      if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
      const { execution } = answer.response["result"] as { execution: object };
      expect(execution).toMatchObject({ backend, profile: "contained" });
      expect(answer.toolResult["kernel"] === release()).toBe(!hasOwnKernel);
      expect(answer.toolResult["uid"]).toBe(rig.config.sandbox.uid);
      expect(answer.createdArtifacts.map(({ filename }) => filename)).toEqual(["note.txt"]);
      expect(statuses).toContain("looking");
      expect(await rig.call("node_look")).toMatchObject({ kind: "success" });
      expect(await rig.call("run", { code })).toMatchObject({
        kind: "success",
        toolResult: { value: [0, 2, 4] },
      });
      expect(await rig.call("reaching")).toMatchObject({ kind: "error" });
    },
  );
});
