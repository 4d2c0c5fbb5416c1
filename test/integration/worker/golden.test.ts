/**
 * The recorded invocations of the original's last Python version, sent to a whole worker: the same
 * answers come back, except where docs/compatibility.md says otherwise.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DevClient } from "../../support/brokers/dev-client.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { namespace, type Rig, type RigTool, startRig } from "../../support/workers/rig.ts";

const golden = join(import.meta.dirname, "../../fixtures/golden");
const read = (name: string): string => readFileSync(join(golden, name), "utf8");
const compatibility = readFileSync(
  join(import.meta.dirname, "../../../docs/compatibility.md"),
  "utf8",
);

const [slow, endless] = ['slow {"seconds": 0.7}', 'slow {"seconds": 60} --timeout 2'] as const;
const fast = 'echo_legacy {"message": "hi"}';

interface Message {
  readonly topic: string;
  readonly user_properties: Readonly<Record<string, string | number>>;
  readonly payload: {
    readonly id?: string;
    readonly method?: string;
    readonly params?: Readonly<Record<string, unknown>>;
    readonly result?: Readonly<Record<string, unknown>>;
    readonly error?: { readonly code: string; readonly message: string };
  };
}

interface RecordedMessage extends Message {
  readonly version: "seed" | "lastpy";
  readonly case: string;
}

/** What one version did with a call: its answer, and the texts of its statuses. */
interface Exchange {
  readonly request: RecordedMessage;
  readonly response: RecordedMessage;
  readonly statuses: readonly string[];
}

/**
 * The exchanges of a version by case. What was recorded once more, with a package that was missing,
 * counts.
 */
function exchangesOf(version: RecordedMessage["version"]): ReadonlyMap<string, Exchange> {
  const messages = read("str-golden.jsonl")
    .trimEnd()
    .split("\n")
    // The original writes NaN, which is not JSON.
    .map((line) => JSON.parse(line.replaceAll(/\bNaN\b/g, '"NaN"')) as RecordedMessage)
    .filter((message) => message.version === version);
  const exchanges = new Map<string, Exchange>();
  for (const request of messages.filter(({ payload }) => payload.method?.endsWith("/invoke"))) {
    const { id } = request.payload;
    const response = messages.find(({ topic }) => topic.includes(`/response/AgentA/${id}`))!;
    const statuses = messages
      .filter(({ topic }) => topic.includes(`/status/AgentA/${id}`))
      .map(({ payload }) => String(payload.params!["status_text"]));
    exchanges.set(request.case, { request, response, statuses });
  }
  return exchanges;
}

const recorded = exchangesOf("lastpy");
/** For what only the first version could do. */
const recordedFirst = exchangesOf("seed");

/** Where the tools of the recording are. */
const tools: Readonly<Record<string, RigTool>> = {
  ...Object.fromEntries(
    [...read("simple_tools.py").matchAll(/^def (\w+)\(/gm)].map(([, name = ""]) => [
      name,
      { module: "simple_tools", function: name },
    ]),
  ),
  echo_tool: { module: "example_tools", function: "echo_tool" },
  execute_python: { module: "example_tools", function: "execute_python" },
  process_file: { module: "example_tools", function: "process_file" },
  portable_echo: { module: "portable_example_tools", function: "portable_echo" },
  portable_process_file: { module: "portable_example_tools", function: "portable_process_file" },
  no_module: { module: "nope_missing", function: "f" },
  no_func: { module: "simple_tools", function: "nope" },
};

const summary = {
  filename: "processing_summary.txt",
  version: expect.any(Number) as number,
  mime_type: "text/plain",
  size_bytes: expect.any(Number) as number,
};
const statistics = { character_count: 265, word_count: 45, line_count: 9 };

/**
 * Where the answer is another one on purpose: rows of docs/compatibility.md, and what is answered
 * here.
 */
const differences: Readonly<Record<string, { rows: readonly string[]; answer: object }>> = {
  'echo_tool {"message": "hi"}': {
    rows: ["`ctx: Any`, as in the design document's example"],
    answer: resultOf(recordedFirst, 'echo_tool {"message": "hi"}'),
  },
  'execute_python {"code": "print(1+1)"}': {
    rows: ["`ctx: Any`, as in the design document's example"],
    answer: resultOf(recordedFirst, 'execute_python {"code": "print(1+1)"}'),
  },
  "process_file {} --preload input_file=/app/seed/test_input.txt": {
    rows: ["`ctx: Any`, as in the design document's example", "`preloaded_artifacts`"],
    answer: {
      tool_result: { status: "success", statistics, output_artifact: "processing_summary.txt" },
      created_artifacts: [summary],
    },
  },
  [endless]: {
    rows: ["A timed-out result", "At the time limit"],
    answer: { timed_out: true, error_code: "SANDBOX_TIMEOUT" },
  },
  "boom {}": {
    rows: ["A failing tool", "`TOOL_ERROR`", "Text of an error"],
    answer: { code: "EXECUTION_ERROR", message: "Tool raised ValueError: invalid input format" },
  },
  "exit3 {}": {
    rows: ["An exit code other than 0"],
    answer: { code: "SANDBOX_FAILED", message: "The tool's process exited with code 3" },
  },
  "ret_nan {}": { rows: ["`NaN` in a result"], answer: { tool_result: { x: null } } },
  "no_module {}": {
    rows: ["A failing tool", "Text of an error"],
    answer: {
      code: "IMPORT_ERROR",
      message:
        "Module \"nope_missing\" cannot be imported: ModuleNotFoundError: No module named 'nope_missing'",
    },
  },
  "no_func {}": {
    rows: ["A failing tool"],
    answer: { code: "TOOL_NOT_FOUND", message: 'Module "simple_tools" has no function "nope"' },
  },
  'mem {"mb": 2000}': {
    rows: ["A failing tool", "Text of an error"],
    answer: {
      code: "EXECUTION_ERROR",
      message: "Tool raised MemoryError: it needs more memory than its sandbox may use",
    },
  },
  'echo_plain {"unexpected": 1}': {
    rows: ["Arguments that do not fit"],
    answer: {
      code: "EXECUTION_ERROR",
      message: 'echo_plain() does not take the argument "unexpected"; it takes message',
    },
  },
  'portable_echo {"message": "hi"}': {
    rows: ["Outputs of a worker without a store"],
    answer: {
      ...resultOf(recorded, 'portable_echo {"message": "hi"}'),
      created_artifacts: [{ ...summary, filename: "echo_output.txt" }],
    },
  },
  "portable_process_file {} --preload input_file=/app/seed/test_input.txt": {
    rows: ["Outputs of a worker without a store", "Type and description that a tool gives"],
    answer: {
      ...resultOf(
        recorded,
        "portable_process_file {} --preload input_file=/app/seed/test_input.txt",
      ),
      created_artifacts: [{ ...summary, description: "What the file has" }],
    },
  },
};

/** What only answers of this worker tell: the row "`execution`" of the table of differences. */
const execution = expect.objectContaining({ profile: "standard", backend: "bubblewrap" }) as object;

/** What an error says of a limit that the tool met; the originals do not tell. */
const limitsMet: Readonly<Record<string, object>> = {
  'mem {"mb": 2000}': {
    limit: "memory",
    bound: builtInProfiles.get("standard")?.limits.memoryBytes,
    unit: "bytes",
  },
};

/** What an answer says, without the time that it took. */
function resultOf(exchanges: ReadonlyMap<string, Exchange>, name: string): object {
  const { result = {} } = exchanges.get(name)!.response.payload;
  return Object.fromEntries(
    Object.entries(result).filter(([member]) => member !== "execution_time_ms"),
  );
}

/** A recorded message with its topics in the rig's namespace. */
function inRig(text: string): string {
  return text.replace(/^gold_lastpy2?\//, `${namespace}/`);
}

describe("a recorded invocation is answered as it was", () => {
  let rig: Rig;
  let client: DevClient;
  const stop = new AbortController();
  /** What came back, by topic, with the properties. */
  const answers = new Map<string, Message[]>();
  const awaited = new Map<string, PromiseWithResolvers<void>>();

  beforeAll(async () => {
    const names = ["simple_tools.py", "example_tools.py", "portable_example_tools.py"];
    rig = await startRig({
      tools,
      files: Object.fromEntries(names.map((name) => [name, read(name)])),
    });
    const address = { host: rig.broker.host, port: rig.broker.port, name: "AgentA" };
    const patterns = [`${namespace}/a2a/v1/sam_remote_tool/*/AgentA/>`];
    client = await DevClient.connect({ ...address, patterns }, stop.signal);
    void listen().catch(() => undefined);
  });
  afterAll(async () => {
    stop.abort();
    await client[Symbol.asyncDispose]();
    await rig[Symbol.asyncDispose]();
  });

  async function listen(): Promise<void> {
    for await (const message of client.messages(stop.signal)) {
      const { topic } = message;
      const payload = JSON.parse(Buffer.from(message.payload).toString()) as Message["payload"];
      const properties = message.userProperties as Message["user_properties"];
      const before = answers.get(topic) ?? [];
      answers.set(topic, [...before, { topic, payload, user_properties: properties }]);
      awaited.get(topic)?.resolve();
    }
  }

  const replays = new Map<string, Promise<{ answer: Message; statuses: readonly Message[] }>>();

  /**
   * Publishes the request of a case once, as it was recorded but for its age, and waits for the
   * answer.
   */
  function replay(name: string): Promise<{ answer: Message; statuses: readonly Message[] }> {
    const answered = replays.get(name) ?? publish(recorded.get(name)!.request);
    replays.set(name, answered);
    return answered;
  }

  async function publish(request: RecordedMessage) {
    const properties: Record<string, string | number> = { ...request.user_properties };
    for (const [name, value] of Object.entries(properties)) {
      properties[name] = typeof value === "string" ? inRig(value) : Date.now();
    }
    const replyTo = String(properties["replyTo"]);
    awaited.set(replyTo, Promise.withResolvers<void>());
    const payload = Buffer.from(JSON.stringify(request.payload));
    await client.publish(inRig(request.topic), payload, properties, stop.signal);
    await awaited.get(replyTo)!.promise;
    const statuses = answers.get(String(properties["statusTo"])) ?? [];
    return { answer: answers.get(replyTo)![0]!, statuses };
  }

  // What it returns depends on how busy the machine is; it has a test of its own.
  const cases = [...recorded.entries()].filter(([name]) => name !== slow);

  test.for(cases.map(([name, exchange]) => [name, exchange] as const))(
    "%s",
    async ([name, exchange]) => {
      const { answer } = await replay(name);
      const { payload: said } = exchange.response;
      expect(answer.user_properties).toMatchObject({ timestamp: expect.any(Number) as number });
      const envelope = { jsonrpc: "2.0", id: exchange.request.payload.id };
      const expected = differences[name]?.answer ?? resultOf(recorded, name);
      if ("code" in expected) {
        expect(answer.payload).toEqual({
          ...envelope,
          error: { ...expected, data: { execution, ...limitsMet[name] } },
        });
        return;
      }
      expect(answer.payload).toEqual({
        ...envelope,
        result: {
          tool_result: {},
          timed_out: false,
          created_artifacts: [],
          ...expected,
          execution_time_ms: expect.any(Number) as number,
          execution,
        },
      });
      expect(Number.isInteger(answer.payload.result!["execution_time_ms"])).toBe(true);
      if (!(name in differences)) expect(said.error).toBeUndefined();
    },
  );

  test("slow, with each status in order and before the answer", async () => {
    const { request, statuses: texts } = recorded.get(slow)!;
    const { answer, statuses } = await replay(slow);
    const { ticks } = answer.payload.result!["tool_result"] as { ticks: number };
    // A busy machine leaves time for fewer than the three of the recording.
    expect(ticks).toBeGreaterThan(0);
    expect(statuses.map(({ payload }) => payload)).toEqual(
      texts.slice(0, ticks).map((text) => ({
        jsonrpc: "2.0",
        method: "sam_remote_tool/status",
        params: {
          task_id: request.payload.id,
          status_text: text,
          timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
        },
      })),
    );
  });

  test("statuses come until the time limit, and those of a fast tool come, too", async () => {
    const texts = (messages: readonly Message[]) =>
      messages.map(({ payload }) => payload.params!["status_text"]);
    const came = texts((await replay(endless)).statuses);
    expect(came.length).toBeGreaterThan(0);
    expect(came).toEqual(recorded.get(endless)!.statuses.slice(0, came.length));

    expect(recorded.get(fast)!.statuses).toEqual([]);
    expect(texts((await replay(fast)).statuses)).toEqual(["Echoing message..."]);
    expect(documentedRows()).toContain("Statuses of a fast tool");
  });
});

/** The first cell of every row of every table. */
function documentedRows(): readonly string[] {
  return compatibility
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) => line.split(" | ")[0]!.slice(2));
}

describe("each difference", () => {
  test.for(Object.entries(differences))("of %s is documented", ([, { rows }]) => {
    expect(documentedRows()).toEqual(expect.arrayContaining([...rows]));
  });

  test.for(Object.entries(differences))("of %s is one", ([name, { answer }]) => {
    expect(resultOf(recorded, name)).not.toEqual({
      tool_result: {},
      timed_out: false,
      created_artifacts: [],
      ...answer,
    });
  });

  test("of every answer is documented: what it tells of the execution", () => {
    expect(documentedRows()).toContain("Facts about the execution in an answer");
  });

  test("is of a case that was recorded", () => {
    expect([...recorded.keys()]).toEqual(expect.arrayContaining(Object.keys(differences)));
    expect(recorded.size).toBe(24);
  });
});
