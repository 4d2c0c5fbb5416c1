/**
 * Runs the real tool runners, Node's unless a program is in Python, with a channel whose other end
 * is a gateway of the test's.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Duplex, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { CallEnd } from "../../../../worker/sandbox/bubblewrap/idle/call-end.ts";
import { callOf, python, runnerEntry } from "../../tool-runner/run-tool.ts";
import { main, parkCommand, runnerDir, toolsDirectory } from "../run-node-tool.ts";

/** A line of the runner's. */
export interface Request {
  readonly type: string;
  readonly id: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** A line of the gateway's, without the id. */
export interface Answer {
  readonly type: "response" | "error";
  readonly payload: object;
}

/** The gateway's end of the channel. */
export interface Gateway {
  readonly socket: Duplex;
  readonly requests: Request[];
  answer(id: string, answer: Answer): void;
}

/** What a gateway does with a request; the answer if it has one now. */
export type Serve = (request: Request, gateway: Gateway) => Answer | undefined;

export interface GatewayRun {
  readonly document: Record<string, unknown> | undefined;
  readonly requests: readonly Request[];
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface GatewayRunOptions {
  /** Whether the runner has waited for its call. */
  readonly isParked?: boolean;
  /** Whether the tool imports a copy of the runner's directory, as in a sandbox. */
  readonly hasOwnCopy?: boolean;
  /** Members of runner_args.json that replace the usual ones. */
  readonly members?: object;
}

export interface ProgramRunOptions extends GatewayRunOptions {
  readonly language?: string;
  readonly inputs?: object;
  readonly files?: Readonly<Record<string, string>>;
}

export const response = (payload: object): Answer => ({ type: "response", payload });
export const failure = (payload: object): Answer => ({ type: "error", payload });
/** Of `run_tool`. */
export const result = (structured: object, artifacts: readonly object[] = []): Answer =>
  response({ structured, artifacts });

/** Commands that start a runner, for a call and before it. */
interface RunnerCommands {
  readonly main: readonly string[];
  readonly park: readonly string[];
}

const nodeRunner: RunnerCommands = { main, park: parkCommand };
const pythonMain = [python, "-I", "-B", runnerEntry];
const pythonRunner: RunnerCommands = { main: pythonMain, park: [...pythonMain, "--park"] };

/** The wake channel of a parked runner is 3. */
const gatewayFd = 4;
const environment = { PATH: "/usr/bin:/bin", LANG: "C.UTF-8" };

let isParking = false;

/** From now on, runners of the test file wait for their calls unless a test says otherwise. */
export function parkRunners(): void {
  isParking = true;
}

/** Runs a tool whose async function has this body, with `ctx`, `tools` and `ToolCallError`. */
export function runWithGateway(
  body: string,
  serve: Serve,
  options: GatewayRunOptions = {},
): Promise<GatewayRun> {
  const source = `
    import { ToolCallError, tools } from "secure-tool-runtime/tool";
    export async function run(args, ctx) { ${body} }`;
  return runModule(source, serve, options);
}

/** Runs `run` of a module with this text to its end. */
export function runModule(
  source: string,
  serve: Serve,
  { members = {}, ...options }: GatewayRunOptions = {},
): Promise<GatewayRun> {
  const call = { module: "tool.mjs", function: "run", ...members };
  const files = { "tools/tool.mjs": source };
  return runCall(nodeRunner, files, serve, { ...options, members: call });
}

/** Runs a program to its end, beside files of the directory of tools. */
export function runProgram(
  code: string,
  serve: Serve = () => undefined,
  { language = "javascript", inputs = {}, files = {}, ...options }: ProgramRunOptions = {},
): Promise<GatewayRun> {
  const call = { program: { language }, args: { code, inputs }, ...options.members };
  const entries = Object.entries({ "empty.mjs": "", ...files });
  const inTools = Object.fromEntries(entries.map(([name, text]) => [`tools/${name}`, text]));
  const runner = language === "python" ? pythonRunner : nodeRunner;
  return runCall(runner, inTools, serve, { ...options, members: call });
}

async function runCall(
  runner: RunnerCommands,
  files: Readonly<Record<string, string>>,
  serve: Serve,
  { isParked = isParking, hasOwnCopy = false, members = {} }: GatewayRunOptions,
): Promise<GatewayRun> {
  const directory = await toolsDirectory(files);
  const [toolsDir, outputDir] = [join(directory, "tools"), join(directory, "output")];
  await mkdir(outputDir);
  const ownCopy = join(directory, "node_modules/secure-tool-runtime");
  if (hasOwnCopy) await cp(runnerDir, ownCopy, { recursive: true });
  const argsFile = join(directory, "runner_args.json");
  const call = JSON.stringify({
    result_file: join(directory, "result.json"),
    output_dir: outputDir,
    tools_dir: toolsDir,
    gateway: { fd: gatewayFd },
    ...members,
  });
  if (!isParked) await writeFile(argsFile, call);
  const argv = isParked
    ? [...fromThree, ...runner.park, "program" in members ? "" : "tool.mjs", toolsDir, argsFile]
    : [...runner.main, argsFile];
  const [program = "", ...rest] = argv;
  const child = spawn(program, rest, {
    cwd: directory,
    env: environment,
    stdio: ["ignore", "pipe", "pipe", isParked ? "pipe" : "ignore", "pipe"],
  });
  const gateway = serving(child.stdio[gatewayFd] as unknown as Duplex, serve);
  const ended = once(child, "exit");
  const output = [text(child.stdout as Readable), text(child.stderr as Readable)] as const;
  let callEnd: CallEnd | undefined;
  if (isParked) {
    const wake = child.stdio[3] as unknown as Duplex;
    await Promise.race([once(wake, "data"), ended]);
    callEnd = new CallEnd(wake, Infinity);
    wake.end(callOf(call));
  }
  const [exitCode] = (await ended) as [number | null];
  const [stdout, stderr] = await Promise.all(output);
  const document =
    callEnd?.result?.toString("utf8") ??
    (await readFile(join(directory, "result.json"), "utf8").catch(() => undefined));
  return {
    document: document === undefined ? undefined : (JSON.parse(document) as GatewayRun["document"]),
    requests: gateway.requests,
    exitCode,
    stdout,
    stderr,
  };
}

/** Moves the wake channel to where a worker has it. */
const fromThree = ["/bin/sh", "-c", 'exec "$@" <&3 3<&-', "sh"];

function serving(socket: Duplex, serve: Serve): Gateway {
  const gateway: Gateway = {
    socket,
    requests: [],
    answer: (id, answer) => void socket.write(`${JSON.stringify({ id, ...answer })}\n`),
  };
  const lines = createInterface({ input: socket });
  // Of the socket: the runner may end while it is being written to.
  lines.on("error", () => undefined);
  lines.on("line", (line) => {
    const request = JSON.parse(line) as Request;
    gateway.requests.push(request);
    const answer = serve(request, gateway);
    if (answer !== undefined) gateway.answer(request.id, answer);
  });
  return gateway;
}
