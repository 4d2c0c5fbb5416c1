/**
 * The calls of the demo, and how each has to end.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { JsonObject } from "../../worker/support/json/json.ts";
import type { CallResult } from "../agent.ts";
import type { SharedArtifacts } from "../artifacts.ts";
import type { ToolCall } from "../messages.ts";

/** One call, and what has to come of it. */
export interface Step {
  readonly title: string;
  readonly call: ToolCall;
  /** What is worth showing of the result; throws Unexpected when it is not as it has to be. */
  judge(result: CallResult, statuses: readonly string[]): Promise<readonly string[]>;
}

/** A call did not end as it has to. */
export class Unexpected extends Error {
  constructor(message: string) {
    super(message);
    this.name = "Unexpected";
  }
}

/** What the steps are about. */
export interface Scene {
  readonly store: SharedArtifacts;
  /** Where the store has its artifacts. */
  readonly places: () => Promise<readonly string[]>;
  /** Directory for downloads. */
  readonly downloads: string;
  /** A text file of this host. */
  readonly textFile: string;
  /** A port of this host that somebody listens on. */
  readonly openPort: number;
  /** A file that every user of this host can read. */
  readonly hostFile: string;
  /** A variable of the worker's environment. */
  readonly workerVariable: string;
  readonly signal: AbortSignal;
}

/** The call that is timed. */
export const quickCall: ToolCall = { tool: "echo_tool", args: { message: "tick" } };

/** The steps in the order of the demo. */
export async function prepareSteps(scene: Scene): Promise<readonly Step[]> {
  return [
    echo,
    await processFile(scene),
    typescript,
    await program(scene),
    compute,
    network(scene),
    host(scene),
    failure,
  ];
}

const echo: Step = {
  title: "A tool runs in a sandbox of its own, and answers",
  call: { tool: "echo_tool", args: { message: "Hello from the other side of the broker" } },
  async judge(result, statuses) {
    const toolResult = succeeded(result);
    expect(toolResult["echoed_message"] === this.call.args?.["message"], "the message came back");
    expect(statuses.length > 0, "a status came before the answer");
    return [json(toolResult)];
  },
};

async function processFile(scene: Scene): Promise<Step> {
  const { store, places, downloads, textFile, signal } = scene;
  const content = await readFile(textFile);
  const reference = await store.upload(textFile, content.byteLength, signal);
  const lineCount = content.toString().split("\n").length;
  return {
    title: "A file goes in and a file comes out, through the artifact store",
    call: {
      tool: "process_file",
      args: { input_file: basename(textFile) },
      references: new Map([["input_file", reference]]),
    },
    async judge(result, statuses) {
      const toolResult = succeeded(result);
      expect(statuses.length > 0, "statuses came before the answer");
      const artifact = createdArtifacts(result).find(({ filename }) => filename === "summary.txt");
      if (!artifact) throw new Unexpected("no artifact summary.txt was created");
      const summary = await readFile(await store.download(artifact, downloads, signal), "utf8");
      expect(summary.startsWith(`Lines: ${lineCount}\n`), `the summary counts ${lineCount} lines`);
      return [
        json(toolResult),
        `artifact summary.txt, version ${artifact.version}, ${artifact.sizeBytes} bytes:`,
        ...summary.split("\n").map((line) => `  ${line}`),
        "the store has:",
        ...(await places()).map((place) => `  ${place}`),
      ];
    },
  };
}

const typescript: Step = {
  title: "A tool written in TypeScript, run as it is",
  call: { tool: "add_business_days", args: { date: "2027-02-26", days: 10 } },
  async judge(result) {
    const toolResult = succeeded(result);
    expect(toolResult["date"] === "2027-03-12", "ten business days are two weeks");
    return [json(toolResult)];
  },
};

async function program({ textFile }: Scene): Promise<Step> {
  const content = await readFile(textFile);
  const filename = basename(textFile);
  const artifact = { filename, version: 0, mimeType: "text/plain", bytes: content };
  const digest = createHash("sha256").update(content).digest("hex");
  return {
    title: "A tool in any language: a shell script, which gets its file inside the call",
    call: {
      tool: "sha256",
      args: { file: filename },
      preloaded: new Map([["file", artifact]]),
    },
    async judge(result, statuses) {
      const toolResult = succeeded(result);
      expect(statuses.length > 0, "a status came before the answer");
      expect(toolResult["sha256"] === digest, "the digest is that of the file");
      return [json(toolResult)];
    },
  };
}

const compute: Step = {
  title: "Code that a model wrote runs under the profile restrictive",
  call: python(`
primes = [n for n in range(2, 50) if all(n % d for d in range(2, n))]
print(*primes)
sum(primes)`),
  async judge(result) {
    const toolResult = succeeded(result);
    expect(toolResult["result"] === "328", "the sum of the primes below 50 is 328");
    return [...stdoutLines(toolResult), `result: ${json(toolResult["result"] ?? null)}`];
  },
};

function network({ openPort }: Scene): Step {
  return {
    title: "It reaches no network: not even the broker that this call came through",
    call: python(`
import socket
for address in [("127.0.0.1", ${openPort}), ("1.1.1.1", 53)]:
    try:
        socket.create_connection(address, timeout=5).close()
        print("REACHED", address)
    except OSError as error:
        print("refused", address, error)`),
    judge: (result) => everythingRefused(result, 2),
  };
}

function host({ hostFile, workerVariable }: Scene): Step {
  return {
    title: "It sees neither the files of this host nor the environment of the worker",
    call: python(`
import os
for path in ["/etc/shadow", "/root", "/home", ${JSON.stringify(hostFile)}]:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).read()
        print("READ", path)
    except OSError as error:
        print("refused", path, error.strerror)
for name in [${JSON.stringify(workerVariable)}]:
    print("READ" if name in os.environ else "refused", name)`),
    judge: (result) => everythingRefused(result, 5),
  };
}

const failure: Step = {
  title: "A tool that cannot do what it is asked says why",
  call: {
    tool: "convert_temperature",
    args: { value: -300, source: "celsius", target: "kelvin" },
  },
  async judge(result) {
    if (result.kind !== "error") throw new Unexpected(`an error had to come, not ${result.kind}`);
    const isAsExpected = result.code === "TOOL_ERROR" && result.message.includes("absolute zero");
    const text = `${result.code}: ${result.message}`;
    expect(isAsExpected, `the tool's own words about absolute zero came, not ${text}`);
    return [text];
  },
};

function python(code: string): ToolCall {
  return { tool: "execute_python", args: { code: code.trim() } };
}

/** Every line of output has to be a refusal. */
async function everythingRefused(result: CallResult, attempts: number): Promise<readonly string[]> {
  const lines = stdoutLines(succeeded(result));
  const refused = lines.filter((line) => line.startsWith("refused "));
  expect(
    refused.length === attempts && lines.length === attempts,
    `all ${attempts} attempts are refused; the tool said: ${lines.join("; ")}`,
  );
  return lines;
}

function succeeded(result: CallResult): JsonObject {
  switch (result.kind) {
    case "success":
      return result.toolResult;
    case "error":
      throw new Unexpected(`the call failed: ${result.code}: ${result.message}`);
    case "unusable":
      throw new Unexpected(`the answer is unusable: ${result.problem}`);
    case "timed-out":
    case "no-answer":
      throw new Unexpected(`the call ended without a result: ${result.kind}`);
  }
}

function createdArtifacts(result: CallResult) {
  return result.kind === "success" ? result.createdArtifacts : [];
}

function stdoutLines(toolResult: JsonObject): readonly string[] {
  const stdout = toolResult["stdout"];
  return typeof stdout === "string" ? stdout.trimEnd().split("\n") : [];
}

function json(value: JsonObject[string]): string {
  return JSON.stringify(value);
}

function expect(isSo: boolean, expectation: string): void {
  if (!isSo) throw new Unexpected(`expected that ${expectation}`);
}
