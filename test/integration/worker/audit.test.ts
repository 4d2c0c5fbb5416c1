/**
 * The audit log of a whole worker: which lines a call has, and what fails without them.
 */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { DevClient } from "../../support/brokers/dev-client.ts";
import { type AuditFacts, auditLines, auditLinesOf } from "../../support/workers/audit-lines.ts";
import { loggedFacts } from "../../support/workers/kept-log.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import {
  type Rig,
  type RigOptions,
  namespace,
  reachableDirectory,
  startRig,
} from "../../support/workers/rig.ts";
import { runWorker } from "../../support/workers/worker-run.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { surroundWorker } from "../../support/workers/worker-surroundings.ts";

const never = new AbortController().signal;

const files = {
  "saving.py": `
def passes(ctx):
    for name, path in ctx.list_artifacts().items():
        with open(path) as file:
            ctx.save_artifact_text(name + ".out", file.read())
    return {}

async def asks(ctx, tool):
    return dict(await ctx.tools.call(tool))

def saves_two(ctx):
    ctx.save_artifact_text("a.txt", "a")
    ctx.save_artifact_text("b.txt", "b")
    return {}
`,
};

async function startAudited(
  tools: RigOptions["tools"],
  environment: RigOptions["environment"] = {},
): Promise<{ rig: Rig; path: string }> {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const path = join(base, "audit.log");
  const rig = await startRig({ tools, files, environment: { AUDIT_LOG: path, ...environment } });
  onTestFinished(() => rig[Symbol.asyncDispose]());
  return { rig, path };
}

async function save({ store, scope }: Rig, filename: string, content: string): Promise<void> {
  const bytes = Buffer.from(content);
  const source = { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes]) };
  await store.save(scope, filename, source, { mimeType: "text/plain" }, never);
}

/** The facts of a line that are its own. */
function ownFacts(line: AuditFacts): AuditFacts {
  const { audit, time, worker, call, request, task, agent, user, session, ...own } = line;
  expect([audit, worker, agent, user, session]).toEqual([
    ...[1, "sandbox-worker-001", "harness", "user-42", "web-1"],
  ]);
  expect([call, request, task]).toEqual([
    expect.stringMatching(/^[0-9a-f]{16}$/),
    expect.any(String),
    expect.any(String),
  ]);
  expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  return own;
}

const durationMs = expect.any(Number) as number;

const saving = (name: string) => ({ module: "saving", function: name });

describe("a call", () => {
  test("of a tool of another worker has lines, too, and may have started once it is sent", async () => {
    const { rig, path } = await startAudited({
      asks: { ...saving("asks"), gateway: { remote: ["weather"] } },
    });
    // Nobody serves it.
    await rig.call("asks", { tool: "weather" }, { timeoutSeconds: 2 });
    const lines = await auditLines(path, 2);
    expect(lines.map(ownFacts)).toMatchObject([
      { event: "call.start", tool: "asks" },
      { event: "call.start", tool: "weather", parent: lines[0]?.["call"] },
      { event: "call.end", tool: "weather", outcome: "SANDBOX_TIMEOUT", started: true },
      { event: "call.end", tool: "asks" },
    ]);
  });

  test("by a tool has lines of its own, which name the call that made it", async () => {
    const { rig, path } = await startAudited({
      asks: { ...saving("asks"), gateway: { tools: ["saves_two"] } },
      saves_two: { ...saving("saves_two"), allowed_callers: ["programmatic"] },
    });
    expect(await rig.call("asks", { tool: "saves_two" })).toMatchObject({ kind: "success" });
    const lines = await auditLines(path, 2);
    const outer = lines[0]?.["call"];
    expect(lines.map(ownFacts)).toMatchObject([
      { event: "call.start", tool: "asks" },
      { event: "call.start", tool: "saves_two", parent: outer },
      { event: "artifact.write", tool: "saves_two", parent: outer },
      { event: "artifact.write", tool: "saves_two", parent: outer },
      { event: "call.end", tool: "saves_two", parent: outer, outcome: "ok", started: true },
      { event: "call.end", tool: "asks", outcome: "ok", started: true },
    ]);
    const inner = lines.filter(({ tool }) => tool === "saves_two").map(({ call }) => call);
    expect(new Set(inner).size).toBe(1);
    expect(inner[0]).not.toBe(outer);
  });

  test("has a line for its start, each artifact that it reads and saves, and its end", async () => {
    const { rig, path } = await startAudited({ passes: saving("passes") });
    await save(rig, "data.csv", "first");
    await save(rig, "data.csv", "second!");
    await save(rig, "user:prefs.json", "{}");
    const answer = await rig.call(
      "passes",
      {},
      {
        references: new Map([
          ["old", { filename: "data.csv", version: 0 }],
          ["latest", { filename: "data.csv", version: undefined }],
          ["prefs", { filename: "user:prefs.json", version: undefined }],
        ]),
        preloaded: new Map([
          [
            "sent",
            { filename: "n.txt", version: 3, mimeType: "text/plain", bytes: Buffer.from("sent") },
          ],
        ]),
      },
    );
    expect(answer).toMatchObject({ kind: "success" });
    const lines = await auditLines(path, 1);
    const own = lines.map(ownFacts);
    const tool = "passes";
    const read = { event: "artifact.read", tool, outcome: "ok" };
    const wrote = { event: "artifact.write", tool, version: 0, outcome: "ok", durationMs };
    expect([own[0], own.at(-1)]).toEqual([
      { event: "call.start", tool },
      { event: "call.end", tool, outcome: "ok", started: true, durationMs },
    ]);
    expect(own.slice(1, -1)).toHaveLength(8);
    expect(own.slice(1, -1)).toEqual(
      expect.arrayContaining([
        { ...read, artifact: "n.txt", version: 3, sizeBytes: 4, source: "request" },
        { ...read, artifact: "data.csv", version: 0, sizeBytes: 5, durationMs },
        { ...read, artifact: "data.csv", version: 1, sizeBytes: 7, durationMs },
        { ...read, artifact: "user:prefs.json", version: 0, sizeBytes: 2, durationMs },
        { ...wrote, artifact: "old.out", sizeBytes: 5 },
        { ...wrote, artifact: "latest.out", sizeBytes: 7 },
        { ...wrote, artifact: "prefs.out", sizeBytes: 2 },
        { ...wrote, artifact: "sent.out", sizeBytes: 4 },
      ]),
    );
    expect(new Set(lines.map(({ call }) => call)).size).toBe(1);
    expect(new Set(lines.map(({ task }) => task)).size).toBe(1);
  });

  test("that fails has its code, and the store's reason for what it could not read", async () => {
    const { rig, path } = await startAudited({
      raises: { function: "raises" },
      reads: { function: "reads" },
      missing: { function: "no_such_function" },
    });
    const references = new Map([["input", { filename: "gone.txt", version: 7 }]]);
    await rig.call("raises");
    await rig.call("reads", {}, { references });
    await rig.call("missing");
    await rig.call("raises", {}, { profile: "none" });
    const end = { event: "call.end", started: true, durationMs };
    expect((await auditLines(path, 4)).map(ownFacts)).toEqual([
      { event: "call.start", tool: "raises" },
      { ...end, tool: "raises", outcome: "EXECUTION_ERROR" },
      { event: "call.start", tool: "reads" },
      {
        ...{ event: "artifact.read", tool: "reads", artifact: "gone.txt", version: 7 },
        ...{ outcome: "ARTIFACT_ERROR", reason: "not-found", durationMs },
      },
      { ...end, tool: "reads", outcome: "ARTIFACT_ERROR", started: false },
      { event: "call.start", tool: "missing" },
      { ...end, tool: "missing", outcome: "TOOL_NOT_FOUND" },
      { event: "call.start", tool: "raises" },
      { ...end, tool: "raises", outcome: "INVALID_REQUEST", started: false },
    ]);
  });

  test("of which one output cannot be saved has lines for it and for those that are deleted", async () => {
    const { rig, path } = await startAudited({ saves_two: saving("saves_two") }, {});
    // A file where the store needs a directory.
    const { basePath } = rig.config.artifacts.store as { basePath: string };
    await save(rig, "c.txt", "c");
    await writeFile(join(basePath, namespace, "user-42/web-1/b.txt"), "");
    expect(await rig.call("saves_two")).toMatchObject({ code: "ARTIFACT_ERROR" });
    const access = (await auditLines(path, 1)).map(ownFacts).slice(1, -1);
    const tool = "saves_two";
    const [a, b] = [
      { tool, artifact: "a.txt", version: 0, outcome: "ok", durationMs },
      { tool, artifact: "b.txt", sizeBytes: 1, durationMs },
    ];
    expect(access).toHaveLength(3);
    expect(access).toEqual(
      expect.arrayContaining([
        { event: "artifact.write", ...a, sizeBytes: 1 },
        { event: "artifact.write", ...b, outcome: "ARTIFACT_ERROR", reason: "unavailable" },
        { event: "artifact.delete", ...a },
      ]),
    );
  });
});

test("a message that is no valid call has a line with what it says of itself", async () => {
  const { rig, path } = await startAudited({ well: { function: "well" } });
  const { host, port } = rig.broker;
  const replies = responseTopic(namespace, "raw", ">");
  const options = { host, port, name: "raw", patterns: [replies] };
  await using client = await DevClient.connect(options, AbortSignal.timeout(30_000));
  const send = async (payload: string, properties: Record<string, string>): Promise<void> => {
    const topic = invokeTopic(namespace, "well");
    await client.publish(topic, Buffer.from(payload), properties, AbortSignal.timeout(30_000));
  };
  const replyTo = responseTopic(namespace, "raw", "1");
  const valid = JSON.stringify({
    id: "7",
    method: "sam_remote_tool/invoke",
    params: { task_id: "7", tool_name: "x", app_name: "a", user_id: "u", session_id: "s" },
  });
  let ends = 0;
  const lastOf = async (payload: string, properties: Record<string, string> = { replyTo }) => {
    await send(payload, properties);
    const {
      audit,
      time,
      worker,
      event,
      durationMs: _,
      ...own
    } = (await auditLines(path, ++ends)).at(-1)!;
    expect({ audit, worker, event }).toEqual({
      audit: 1,
      worker: "sandbox-worker-001",
      event: "call.end",
    });
    expect(time).toEqual(expect.any(String));
    return own;
  };
  const call = expect.stringMatching(/^[0-9a-f]{16}$/) as unknown;
  const invalid = { call, tool: "well", outcome: "INVALID_REQUEST", started: false };
  expect(await lastOf("[1]")).toEqual(invalid);
  const partly = { id: "x", params: { user_id: "u", session_id: 7, app_name: "" } };
  expect(await lastOf(JSON.stringify(partly))).toEqual({ ...invalid, request: "x", user: "u" });
  expect(await lastOf(valid, {})).toEqual({ tool: "well", outcome: "rejected", started: false });
  const names = { request: "7", task: "7", agent: "a", user: "u", session: "s" };
  const ran = await lastOf(valid);
  expect(ran).toEqual({ call, tool: "well", ...names, outcome: "ok", started: true });
  // The same call once more.
  expect(await lastOf(valid)).toEqual({
    ...{ call: ran["call"], tool: "well", outcome: "duplicate", started: false },
  });
});

describe("a log that cannot be written", () => {
  test("costs no call, and is reported", async () => {
    const { rig } = await startAudited({ well: { function: "well" } }, { AUDIT_LOG: "/dev/full" });
    expect(await rig.call("well")).toMatchObject({ kind: "success" });
    expect(loggedFacts(rig.logLines, "audit.failed")).toMatchObject([{ isRequired: false }]);
    await rig.worker[Symbol.asyncDispose]();
    expect(loggedFacts(rig.logLines, "audit.lines_lost")).toMatchObject([{ lost: 2 }]);
  });

  test("fails each call before it starts, and the worker's readiness, if it is required", async () => {
    const [port] = await freePorts(1);
    const readiness = async (): Promise<unknown> => {
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
      return { status: answer.status, body: await answer.json() };
    };
    const environment = {
      ...{ AUDIT_LOG: "/dev/full", AUDIT_REQUIRED: "1" },
      ...{ HEALTH_PORT: String(port), HEALTH_HOST: "127.0.0.1" },
    };
    const { rig } = await startAudited({ well: { function: "well" } }, environment);
    expect(await readiness()).toEqual({ status: 200, body: { ok: true } });
    // An agent tries such a call again.
    expect(await rig.call("well")).toMatchObject({
      ...{ kind: "error", code: "TOOL_NOT_AVAILABLE" },
      message: "The worker's audit log cannot be written.",
    });
    const missing = ["the audit log cannot be written"];
    expect(await readiness()).toEqual({ status: 503, body: { ok: false, missing } });
    expect(loggedFacts(rig.logLines, "tool.started")).toEqual([]);
    expect(loggedFacts(rig.logLines, "audit.failed")).toHaveLength(1);
  });
});

describe("standard output as the audit log", () => {
  test("has its lines beside those of the worker's log", { tags: "full" }, async () => {
    const { environment, connectAgent } = await surroundWorker({ well: { function: "well" } });
    await using worker = new WorkerProcess({ ...environment, AUDIT_LOG: "stdout" });
    await worker.says("worker.ready");
    await using agent = await connectAgent();
    await agent.call({ tool: "well", userId: "u", sessionId: "s" });
    await worker.says("call.end");
    worker.child.kill("SIGTERM");
    await worker.exited;
    const lines = auditLinesOf(worker.output);
    expect(lines.filter(({ level }) => level !== undefined)).not.toEqual([]);
    expect(lines.filter(({ audit }) => audit === 1).map(({ event }) => event)).toEqual([
      "call.start",
      "call.end",
    ]);
    expect(lines.filter(({ audit, level }) => audit === undefined && level === undefined)).toEqual(
      [],
    );
  });
});

describe("a file that cannot be opened", () => {
  test("is a finding of --check, and a reason not to start if it is required", async () => {
    const { base, environment } = await surroundWorker({ well: { function: "well" } });
    const quiet = {
      ...environment,
      LOG_LEVEL: "silent",
      AUDIT_LOG: join(base, "missing/audit.log"),
    };
    const checked = await runWorker(quiet, ["--check"]);
    expect(JSON.parse(checked.output)).toMatchObject({
      auditLog: { problems: ["the audit log cannot be written"] },
    });
    const required = await runWorker({ ...quiet, AUDIT_REQUIRED: "1" });
    expect(required.code).toBe(78);
    expect(required.output).toMatch(/^str-worker: AUDIT_LOG: cannot be opened.*ENOENT/);
  });

  test("fails --check --strict, and one that can passes it", { tags: "full" }, async () => {
    const { base, environment } = await surroundWorker({ well: { function: "well" } });
    const quiet = { ...environment, LOG_LEVEL: "silent" };
    const missing = { ...quiet, AUDIT_LOG: join(base, "missing/audit.log") };
    expect(await runWorker(missing, ["--check", "--strict"])).toMatchObject({
      code: 78,
      output: expect.stringContaining("audit log") as unknown,
    });
    const good = await runWorker({ ...quiet, AUDIT_LOG: join(base, "audit.log") }, ["--check"]);
    expect(JSON.parse(good.output)).toMatchObject({ auditLog: { problems: [] } });
    expect(await readFile(join(base, "audit.log"), "utf8")).toBe("");
  });
});
