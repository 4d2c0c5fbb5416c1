/**
 * The console of a whole worker, as its page uses it.
 */
import { once } from "node:events";
import { type IncomingMessage, request as send } from "node:http";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { CallDetail, CallView, WorkerView } from "../../../worker/console/api.ts";
import { freePorts } from "../../support/brokers/rabbitmq-ports.ts";
import { ConsoleClient, type StreamEvent, ask } from "../../support/console/console-client.ts";
import { patience } from "../../support/patience.ts";
import { type Rig, startRig } from "../../support/workers/rig.ts";

const token = "the-token-of-this-test-is-long-enough";
const printing = `
import sys

def prints(ctx, name="world"):
    print("hello", name)
    print("careful", file=sys.stderr)
    ctx.send_status("half way")
    ctx.save_artifact("greeting é.txt", b"hello", mime_type="text/html", description="says hello")
    return {"greeted": name}

def waits(ctx):
    import time
    ctx.send_status("waiting")
    time.sleep(60)
`;

let rig: Rig;
let port: number;
let client: ConsoleClient;

beforeAll(async () => {
  [port] = (await freePorts(1)) as [number];
  rig = await startRig({
    tools: {
      prints: {
        module: "printing",
        function: "prints",
        description: "Greets.",
        parameters: { type: "object", properties: { name: { type: "string" } } },
      },
      reads: { function: "reads" },
      raises: { function: "raises" },
      waits: { module: "printing", function: "waits" },
    },
    files: { "printing.py": printing },
    environment: { CONSOLE_PORT: String(port), CONSOLE_TOKEN: token },
  });
  client = await ConsoleClient.open(port, token);
});

afterAll(() => rig[Symbol.asyncDispose]());

async function ended(id: string): Promise<CallDetail> {
  return await vi.waitFor(async () => {
    const detail = await client.detail(id);
    expect(detail.call.outcome).not.toBe(null);
    return detail;
  }, patience);
}

describe("a call that the console makes", () => {
  test("has its phases, statuses, output, limits, answer and artifacts", async () => {
    const id = await client.call({ tool: "prints", arguments: { name: "Ada" } });
    const { call, ...detail } = await ended(id);
    expect(call).toMatchObject({
      ...{ id, tool: "prints", isOwn: true, correlationId: id, deliveryCount: 1 },
      ...{ outcome: "ok", settlement: "accepted", profile: "standard", start: "cold" },
      ...{ backend: "bubblewrap", isCancelled: false, limitReached: null },
    });
    const steps = ["receive", "queue", "acquire", "stage", "run", "collect", "publish"];
    expect(call.phases.map(({ step }) => step)).toEqual(steps);
    expect(call.phases.every(({ endMs }) => endMs !== null)).toBe(true);
    expect(call.limits).toContainEqual({
      limit: "wall_time",
      bound: 300,
      unit: "seconds",
      by: "guard",
    });
    expect(call.limits.length).toBe(11);
    expect(call.durationMs).toBeGreaterThan(0);
    expect(detail).toMatchObject({
      statuses: [{ callId: id, text: "half way" }],
      output: [
        { stream: "stdout", text: "hello Ada\n", isCut: false },
        { stream: "stderr", text: "careful\n", isCut: false },
      ],
      request: { arguments: { name: "Ada" }, inputs: {} },
      answer: { id, result: { tool_result: { greeted: "Ada" } } },
      artifacts: [{ filename: "greeting é.txt", version: 0, sizeBytes: 5, mimeType: "text/html" }],
    });
  });

  test(
    "gives its artifacts as downloads that no browser runs",
    { tags: "promise-V3" },
    async () => {
      const id = await client.call({ tool: "prints" });
      await ended(id);
      const { status, headers, body } = await client.ask({ path: `/api/calls/${id}/artifacts/0` });
      expect({ status, text: body.toString() }).toEqual({ status: 200, text: "hello" });
      expect(headers).toMatchObject({
        "content-type": "application/octet-stream",
        "content-disposition": "attachment; filename*=UTF-8''greeting%20%C3%A9.txt",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
      });
      expect((await client.ask({ path: `/api/calls/${id}/artifacts/1` })).status).toBe(404);
    },
  );

  test("gets files as inputs", async () => {
    const input = await client.put("in put.csv", "a,b\n1,2\n");
    expect(input).toEqual({ filename: "in put.csv", version: 0, sizeBytes: 8 });
    const { filename, version } = input;
    const inputs = { input_file: { filename, version } };
    const detail = await ended(await client.call({ tool: "reads", inputs }));
    expect(detail.answer).toMatchObject({
      result: {
        tool_result: {
          input_file: filename,
          inputs: { input_file: { name: filename, text: "a,b\n1,2\n" } },
        },
      },
    });
  });

  test("can be cancelled while it runs, and not after", async () => {
    const id = await client.call({ tool: "waits" });
    await vi.waitFor(async () => {
      const { statuses } = await client.detail(id);
      expect(statuses).toMatchObject([{ text: "waiting" }]);
    }, patience);
    const cancel = { method: "POST", path: `/api/calls/${id}/cancel` };
    expect((await client.ask(cancel)).status).toBe(202);
    const { call, answer } = await ended(id);
    expect(call).toMatchObject({ isCancelled: true, outcome: "CANCELLED" });
    const message = "An operator cancelled the call, and the tool was stopped";
    expect(answer).toMatchObject({ error: { code: "CANCELLED", message } });
    expect(rig.logLines.join("")).toContain('"event":"console.cancelled"');
    expect((await client.ask(cancel)).status).toBe(409);
  });

  test("has the error that agents get", async () => {
    const { call, answer } = await ended(await client.call({ tool: "raises" }));
    expect(call.outcome).toBe("EXECUTION_ERROR");
    expect(answer).toMatchObject({ error: { code: "EXECUTION_ERROR" } });
  });

  test.for([
    [{ tool: "unknown", arguments: {}, inputs: {} }, 404, "TOOL_NOT_AVAILABLE"],
    [{ tool: "prints", arguments: [], inputs: {} }, 400, "arguments: expected an object"],
    [{ tool: "prints", arguments: {}, inputs: {}, user_id: "eve" }, 400, "user_id"],
    [{ tool: "prints", arguments: {}, inputs: { f: { filename: "x" } } }, 400, "inputs.f"],
  ] as const)("is refused when it is no call: %j", async ([body, status, words]) => {
    const headers = { "content-type": "application/json" };
    const asked = { method: "POST", path: "/api/calls", headers, body: JSON.stringify(body) };
    const answered = await client.ask(asked);
    expect(answered.status).toBe(status);
    expect(answered.body.toString()).toContain(words);
  });
});

test(
  "a call of an agent is shown without its arguments and its result",
  { tags: "promise-V4" },
  async () => {
    await rig.call("prints", { name: "a secret" });
    const call = await vi.waitFor(async () => {
      const calls = await firstOf<readonly CallView[]>("calls");
      const own = calls.find(({ isOwn, tool, outcome }) => !isOwn && tool === "prints" && outcome);
      expect(own).toBeDefined();
      return own;
    }, patience);
    const detail = await client.detail(call?.id ?? "");
    expect(detail).toMatchObject({ request: null, answer: null, output: [], artifacts: [] });
    expect(JSON.stringify(detail)).not.toContain("a secret");
  },
);

describe("the stream", () => {
  test("tells what there is, and then what changes", async () => {
    const { signal, abort } = abortable();
    const seen: StreamEvent[] = [];
    const reading = (async () => {
      for await (const event of client.events(signal)) seen.push(event);
    })().catch(() => undefined);
    await vi.waitFor(() => expect(seen.length).toBeGreaterThanOrEqual(3), patience);
    expect(seen.slice(0, 3).map(({ name }) => name)).toEqual(["state", "calls", "samples"]);
    const state = seen[0]?.data as WorkerView;
    expect(state).toMatchObject({
      worker: { namespace: "rig", broker: "dev", store: "filesystem" },
      isReady: true,
      missing: [],
      manifest: { isUsable: true, problems: [], unavailable: [] },
      queues: [{ name: "default" }],
    });
    expect(state.tools.map(({ name }) => name)).toEqual(["prints", "reads", "raises", "waits"]);
    expect(state.tools[0]).toMatchObject({ description: "Greets.", profile: "standard" });
    expect(state.profiles.map(({ name }) => name)).toEqual([
      "restrictive",
      "standard",
      "permissive",
    ]);
    expect(state.hosts[0]?.checks.map(({ name }) => name)).toContain("seccomp");

    const id = await client.call({ tool: "prints" });
    const told = (name: string) =>
      seen.filter((event) => event.name === name).map(({ data }) => data as { callId: string });
    await vi.waitFor(() => {
      const last = seen.findLast(({ name }) => name === "call")?.data as CallView;
      expect(last).toMatchObject({ id, outcome: "ok" });
      expect(told("status")).toContainEqual(
        expect.objectContaining({ callId: id, text: "half way" }),
      );
      expect(told("output")).toContainEqual({
        callId: id,
        stream: "stdout",
        text: "hello world\n",
      });
      expect(told("sample").length).toBeGreaterThan(0);
    }, patience);
    abort();
    await reading;
  });
});

describe("without the token", { tags: "promise-V1" }, () => {
  const call = JSON.stringify({ tool: "prints", arguments: {}, inputs: {} });

  test.for([
    ["GET", "/api/events"],
    ["POST", "/api/calls"],
    ["PUT", "/api/inputs/data.csv"],
    ["GET", "/api/calls/x"],
    ["POST", "/api/calls/x/cancel"],
    ["GET", "/api/calls/x/artifacts/0"],
    ["GET", "/api/nothing"],
  ] as const)("%s %s is refused", async ([method, path]) => {
    const body = method === "GET" ? undefined : call;
    for (const authorization of ["", "Bearer ", `Bearer ${token}x`, token, `Basic ${token}`]) {
      const headers = { "content-type": "application/json", authorization };
      const { status } = await ask(port, { method, path, headers, ...(body && { body }) });
      expect(status, authorization).toBe(401);
    }
  });

  test("no body is read", async () => {
    const request = send({ host: "127.0.0.1", port, method: "POST", path: "/api/calls" });
    request.on("error", () => undefined);
    request.setHeader("content-length", 10_000_000);
    request.flushHeaders();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    expect(response.statusCode).toBe(401);
    response.resume();
    await once(response, "close");
  });

  test("the page is served, which may load nothing from elsewhere", async () => {
    const { status, headers } = await ask(port, { path: "/" });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-security-policy": expect.stringContaining("default-src 'none'; script-src 'self'"),
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    });
    expect(headers).not.toHaveProperty("set-cookie");
  });
});

test("no other origin gets permission to send the token", { tags: "promise-V2" }, async () => {
  const headers = {
    origin: "https://evil.example",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
  };
  const preflight = await ask(port, { method: "OPTIONS", path: "/api/calls", headers });
  const answered = await client.ask({ path: "/api/calls/x", headers });
  for (const answer of [preflight, answered])
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual(
      [],
    );
  expect(preflight.status).toBe(401);
});

describe("an input", () => {
  test.for([
    ["..", {}, 400, "ARTIFACT_ERROR"],
    ["x".repeat(300), {}, 400, "ARTIFACT_ERROR"],
    ["%E0%A4%A", {}, 400, "BAD_REQUEST"],
    ["large.bin", { "content-length": "6000000000" }, 413, "TOO_LARGE"],
    ["data.csv", { "transfer-encoding": "chunked" }, 411, "BAD_REQUEST"],
  ] as const)("%s with %j is refused with %i", async ([name, headers, status, code]) => {
    const asked = { method: "PUT", path: `/api/inputs/${name}`, headers, body: "text" };
    const answered = await client.ask(asked);
    expect(answered.status).toBe(status);
    expect(JSON.parse(answered.body.toString())).toMatchObject({ error: { code } });
  });
});

/** The first event of that name. */
async function firstOf<Data>(name: string): Promise<Data> {
  const { signal, abort } = abortable();
  try {
    for await (const event of client.events(signal))
      if (event.name === name) return event.data as Data;
  } finally {
    abort();
  }
  throw new Error(`no event ${name}`);
}

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
