/**
 * Descriptions of tools between a worker and agents, over a DevBroker.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parse as parseYaml } from "yaml";
import { openDevBroker } from "../../../harness/client/broker-choice.ts";
import type { BrokerSession, HeardMessage } from "../../../worker/broker/broker.ts";
import { type DiscoveryKind, discoveryTopic } from "../../../worker/protocol/topics.ts";
import { patience } from "../../support/patience.ts";
import { CliRun } from "../harness/cli-process.ts";
import { type Rig, namespace, startRig } from "../../support/workers/rig.ts";

const properties = { name: { type: "string" }, size: { type: "integer" } };
const parameters = { type: "object", properties, additionalProperties: false };
const tools = {
  echo: { function: "well", description: "Echoes.", parameters: { type: "object" } },
  typed: { function: "takes_two", description: "Two.", parameters },
  coerced: { function: "takes_two", description: "Two.", parameters, coerce: true },
  reads: {
    ...{ module: "reading", function: "read", description: "Reads.", parameters: {} },
    artifact_params: { text: {}, texts: { is_list: true } },
  },
  read_typed: {
    ...{ module: "reading", function: "read", description: "Reads." },
    parameters: {
      properties: {
        text: { type: "string", description: "A text." },
        texts: { type: "array", items: { type: "string" } },
      },
      required: ["text"],
    },
    artifact_params: { text: {}, texts: { is_list: true } },
  },
  derived: { module: "derived", function: "forecast" },
  ends: { module: "ends", function: "run" },
  strict: {
    ...{ function: "well", description: "Strict.", parameters: {} },
    output_schema: { required: ["missing"] },
  },
};
const reading = `
def read(ctx, text=None, texts=()):
    names = ["text"] if text else [f"texts[{index}]" for index in range(len(texts))]
    return {"read": [ctx.load_artifact_text(name) for name in names]}
`;

const derived = `
def forecast(city: str, days: int = 3):
    """Forecast for a city.

    Args:
        city: Name of the city.
    """
    return {"city": city, "days": days}
`;

/** What it prints may be a secret of its variables. */
const ends = `
import os, sys
print("printed by the tool", file=sys.stderr, flush=True)
os._exit(3)
`;

let rig: Rig;
let session: BrokerSession;
const heard: HeardMessage[] = [];

beforeAll(async () => {
  rig = await startRig({
    tools,
    files: { "reading.py": reading, "derived.py": derived, "ends.py": ends },
    environment: { TOOLS_DESCRIBED_BY: "code" },
  });
  const broker = await openDevBroker(rig.broker, { namespace, name: "agent" });
  session = await broker.connect([], AbortSignal.timeout(patience.timeout));
  const base = discoveryTopic(namespace, "init", "").replace("/init/", "");
  const subscription = await session.subscribe(`${base}/>`, AbortSignal.timeout(patience.timeout));
  void (async () => {
    for await (const message of subscription) heard.push(message);
  })();
});

afterAll(async () => {
  await session[Symbol.asyncDispose]();
  await rig[Symbol.asyncDispose]();
});

async function ask(kind: DiscoveryKind, tool: string, request: object | string): Promise<unknown> {
  const replyTo = `${namespace}/a2a/v1/sam_remote_tool/response/agent/${String(heard.length)}`;
  const text = typeof request === "string" ? request : JSON.stringify(request);
  const message = {
    topic: discoveryTopic(namespace, kind, tool),
    payload: Buffer.from(text),
    properties: { replyTo },
  };
  await session.publish(message, AbortSignal.timeout(patience.timeout));
  return await vi.waitFor(() => jsonOf(heard.find(({ topic }) => topic === replyTo)), patience);
}

function jsonOf(message: HeardMessage | undefined): unknown {
  if (message === undefined) throw new Error("nothing was heard");
  return JSON.parse(Buffer.from(message.payload).toString());
}

const request = (method: string) => ({
  ...{ jsonrpc: "2.0", id: "1", method: `sam_remote_tool/${method}` },
  params: { tool_name: "echo", tool_config: {} },
});

describe("a worker", () => {
  test("describes a function to newer agents", async () => {
    expect(await ask("init_request", "echo", request("init_request"))).toEqual({
      jsonrpc: "2.0",
      id: "1",
      result: {
        tool_name: "echo",
        description: "Echoes.",
        parameters: { type: "object", properties: {} },
        allowed_callers: ["direct"],
        json_schema: { parameters: { type: "object" } },
      },
    });
  });

  test("describes it to early agents on the topic of its own broadcasts", async () => {
    expect(await ask("init", "echo", request("init"))).toMatchObject({
      result: { tool_description: "Echoes.", parameters_schema: { type: "object" } },
    });
  });

  test("answers no broadcast of others, which has no id", async () => {
    const replyTo = `${namespace}/a2a/v1/sam_remote_tool/response/agent/none`;
    const { id: _, ...broadcast } = request("init");
    const message = {
      topic: discoveryTopic(namespace, "init", "echo"),
      payload: Buffer.from(JSON.stringify(broadcast)),
      properties: { replyTo },
    };
    await session.publish(message, AbortSignal.timeout(patience.timeout));
    await ask("init", "echo", request("init"));
    expect(heard.filter(({ topic }) => topic === replyTo)).toEqual([]);
  });

  test.each(['"text"', "{}", JSON.stringify({ ...request("other"), params: {} })])(
    "refuses the request %s",
    async (text) => {
      expect(await ask("init_request", "echo", text)).toMatchObject({
        error: { code: "INVALID_REQUEST" },
      });
    },
  );

  test("broadcasts a tool that the manifest adds, and tells once that one was removed", async () => {
    const manifest = JSON.parse(await readFile(rig.manifestPath, "utf8")) as { tools: object };
    const { echo, ...others } = manifest.tools as Record<string, object>;
    const changed = { ...manifest, tools: { ...others, echo_2: echo } };
    await writeFile(rig.manifestPath, JSON.stringify(changed));
    const on = (kind: DiscoveryKind, tool: string) =>
      heard.filter(({ topic }) => topic === discoveryTopic(namespace, kind, tool));
    await vi.waitFor(() => expect(on("init", "echo_2")).toHaveLength(1), patience);
    await vi.waitFor(() => expect(on("removed", "echo")).toHaveLength(1), patience);
    expect(jsonOf(on("removed", "echo")[0])).toEqual({
      jsonrpc: "2.0",
      method: "sam_remote_tool/removed",
      params: { tool_name: "echo" },
    });
    expect(jsonOf(on("init", "echo_2")[0])).not.toHaveProperty("id");
  });
});

describe("a tool that the manifest does not describe", () => {
  test("is described by its code, which its calls are checked against", async () => {
    expect(await ask("init_request", "derived", request("init_request"))).toMatchObject({
      result: {
        description: "Forecast for a city.",
        parameters: {
          properties: {
            city: { type: "string", description: "Name of the city." },
            days: { type: "integer", default: 3 },
          },
          required: ["city"],
        },
      },
    });
    expect(await rig.call("derived", { city: "Ulm", days: "two" })).toMatchObject({
      message: 'Invalid request: params.args.days: expected a whole number or nothing, found "two"',
    });
    expect(await rig.call("derived", { city: "Ulm" })).toMatchObject({
      toolResult: { city: "Ulm", days: 3 },
    });
  });
});

describe("a tool that cannot be described", () => {
  test("has no word that it printed in a message, and in no log", async () => {
    const error = { code: "SANDBOX_FAILED", message: "The tool's code could not be described" };
    expect(await ask("init_request", "ends", request("init_request"))).toMatchObject({ error });
    const topic = discoveryTopic(namespace, "failed_discovery", "ends");
    const failed = await vi.waitFor(
      () => jsonOf(heard.find((message) => message.topic === topic)),
      patience,
    );
    expect(failed).toMatchObject({ params: { tool_name: "ends", error } });
    for (const { payload } of heard)
      expect(Buffer.from(payload).toString()).not.toContain("printed by the tool");
    expect(rig.logLines.join("")).toContain("tool.not_described");
    expect(rig.logLines.join("")).not.toContain("printed by the tool");
  });
});

describe("the harness", () => {
  const place = () => ["--broker", `127.0.0.1:${rig.broker.port}`, "--namespace", namespace];

  test("lists the tools that a worker has, with their arguments", async () => {
    await using cli = new CliRun(["tools", ...place(), "--tool", "typed", "--tool", "derived"]);
    expect(await cli.finished).toMatchObject({
      exitCode: 0,
      stdout: [
        "derived  served  Forecast for a city.",
        "         city: text, required. Name of the city.",
        "         days: a whole number",
        "typed    served  Two.",
        "         name: text",
        "         size: a whole number",
        "",
      ].join("\n"),
    });
  });

  test("writes what an agent's YAML says of a tool", async () => {
    await using cli = new CliRun(["agent-yaml", "read_typed", ...place()]);
    const { stdout, exitCode } = await cli.finished;
    expect(exitCode).toBe(0);
    expect(parseYaml(stdout)).toEqual([
      {
        tool_type: "sam_remote",
        tool_name: "read_typed",
        tool_description: "Reads.",
        parameters: {
          type: "object",
          properties: {
            text: { type: "artifact", description: "A text." },
            texts: { type: "array", items: { type: "artifact" } },
          },
          required: ["text"],
        },
      },
    ]);
  });
});

describe("a call", () => {
  test("with a wrong argument is refused before a sandbox, by the argument's name", async () => {
    const answer = await rig.call("typed", { name: "a", size: "5" });
    expect(answer).toMatchObject({
      code: "INVALID_REQUEST",
      message: 'Invalid request: params.args.size: expected a whole number, found "5"',
    });
    expect(answer).not.toHaveProperty("data.execution");
  });

  test("has a refused argument in no log", { tags: "promise-R7" }, async () => {
    await rig.call("typed", { name: "a", size: "argument-value" });
    expect(rig.logLines.join("\n")).toContain("INVALID_REQUEST");
    expect(rig.logLines.join("\n")).not.toContain("argument-value");
  });

  test("has its arguments converted where the manifest says so", async () => {
    expect(await rig.call("coerced", { name: "a", size: "5" })).toMatchObject({
      toolResult: { name: "a", size: 5 },
    });
  });

  test("with the filename of an artifact alone has it loaded, also of each of a list", async () => {
    const { signal } = new AbortController();
    for (const name of ["one.txt", "two.txt"]) {
      const source = { sizeBytes: 7, open: () => Readable.from([Buffer.from(name)]) };
      await rig.store.save(rig.scope, name, source, { mimeType: "text/plain" }, signal);
    }
    expect(await rig.call("reads", { text: "one.txt" })).toMatchObject({
      toolResult: { read: ["one.txt"] },
    });
    expect(await rig.call("reads", { texts: ["one.txt", "two.txt"] })).toMatchObject({
      toolResult: { read: ["one.txt", "two.txt"] },
    });
    expect(await rig.call("reads", { text: "none.txt" })).toMatchObject({
      code: "ARTIFACT_ERROR",
    });
  });

  test("fails when its result does not match the manifest's output_schema", async () => {
    expect(await rig.call("strict")).toMatchObject({
      code: "EXECUTION_ERROR",
      message: expect.stringContaining("result.missing: missing, expected a value") as string,
    });
  });
});

describe("a tool whose code changes", () => {
  test("is broadcast anew by a worker without idle sandboxes", async () => {
    expect(rig.config.sandbox.maxWarmBytes).toBe(0);
    const topic = discoveryTopic(namespace, "init", "derived");
    const last = () => jsonOf(heard.findLast((message) => message.topic === topic));
    await vi.waitFor(last, patience);
    const changed = derived.replace("Forecast for a city", "Weather of a town");
    await writeFile(join(rig.toolsDir, "derived.py"), changed);
    await vi.waitFor(
      () => expect(last()).toMatchObject({ params: { description: "Weather of a town." } }),
      patience,
    );
  });
});
