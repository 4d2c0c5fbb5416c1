/**
 * Promises of SECURITY.md about the audit log: callers and tools neither forge nor break its lines,
 * and nothing that they pass is in it.
 */
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { auditFields } from "../../../worker/telemetry/audit/event.ts";
import { auditLines } from "../../support/workers/audit-lines.ts";
import { reachableDirectory, startRig } from "../../support/workers/rig.ts";

const secret = "s3cr3t-canary";
const forged = '"}\n{"audit":1,"event":"call.end","user":"victim"}\n\u2028\u202e';

const files = {
  "passing.py": `
def passes(ctx, value):
    ctx.save_artifact_text("out.txt", value, description=value)
    ctx.send_status(value)
    print(value)
    return {"value": value}

def raises(value):
    raise ValueError(value)

def names(value):
    with open("/sandbox/work/output/" + value.replace("/", ""), "w") as file:
        file.write(value)
    return {}
`,
};
const tool = (name: string) => ({ module: "passing", function: name });

async function startAudited() {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const path = join(base, "audit.log");
  const rig = await startRig({
    tools: { passes: tool("passes"), raises: tool("raises"), names: tool("names") },
    files,
    environment: { AUDIT_LOG: path },
  });
  onTestFinished(() => rig[Symbol.asyncDispose]());
  return { rig, path };
}

test(
  "neither arguments, configuration nor content stand in the audit log",
  { tags: "promise-R10" },
  async () => {
    const { rig, path } = await startAudited();
    const bytes = Buffer.from(secret);
    const preloaded = { filename: "in.txt", version: 0, mimeType: `text/${secret}`, bytes };
    const more = {
      toolConfig: { key: secret },
      preloaded: new Map([[`parameter-${secret}`, preloaded]]),
    };
    expect(await rig.call("passes", { value: secret }, more)).toMatchObject({ kind: "success" });
    expect(await rig.call("raises", { value: secret }, more)).toMatchObject({
      ...{ code: "EXECUTION_ERROR", message: expect.stringContaining(secret) as unknown },
    });
    const lines = await auditLines(path, 2);
    expect(await readFile(path, "utf8")).not.toContain(secret);
    // What was passed is recorded, but by its name.
    expect(lines.map(({ artifact }) => artifact).filter(Boolean)).toEqual([
      ...["in.txt", "out.txt", "in.txt"],
    ]);
    expect(lines.flatMap(Object.keys).filter((field) => !(field in auditFields))).toEqual([]);
  },
);

test(
  "names of a request or an output that imitate lines are values of one line",
  { tags: ["promise-R9", "promise-R10"] },
  async () => {
    const { rig, path } = await startAudited();
    await rig.call("raises", { value: "" }, { userId: forged, sessionId: forged });
    // The worker stages no name with a line end.
    const filename = forged.replaceAll("\n", "");
    const references = new Map([["input", { filename, version: undefined }]]);
    await rig.call("raises", { value: "" }, { references });
    await rig.call("names", { value: forged });
    const lines = await auditLines(path, 3);
    const own = (await readFile(path, "utf8")).split("\n");
    expect(own).toHaveLength(lines.length + 1);
    expect(own.filter((line) => /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(line))).toEqual([]);
    expect(lines.map(({ event, user, session, artifact }) => [event, user, session, artifact]))
      // The name of an output is refused before it is saved.
      .toEqual([
        ["call.start", forged, forged, undefined],
        ["call.end", forged, forged, undefined],
        ["call.start", "user-42", "web-1", undefined],
        ["artifact.read", "user-42", "web-1", filename],
        ["call.end", "user-42", "web-1", undefined],
        ["call.start", "user-42", "web-1", undefined],
        ["call.end", "user-42", "web-1", undefined],
      ]);
  },
);
