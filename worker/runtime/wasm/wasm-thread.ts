/**
 * The thread of `threads.ts`: runs one program after the other, each in a fresh instance that is
 * made ahead.
 */
import { parentPort, workerData } from "node:worker_threads";
import type { Script } from "./failures.ts";
import { syntaxFailure } from "./failures.ts";
import { Instance } from "./instance.ts";
import { maxRequestBytes, maxRequestsAtOnce, maxTimers, reusedMemoryBytes } from "./limits.ts";
import type {
  Engine,
  Outcome,
  Program,
  ThreadCommand,
  ThreadData,
  ThreadReport,
} from "./messages.ts";
import { Output } from "./output.ts";
import { prepareSource } from "./source.ts";

/** Milliseconds of the longest timer. */
const maxDelayMs = 2 ** 31 - 1;

const data = workerData as ThreadData;
const output = new Output(data.output);
/** The program's numbers of requests by those on the wire, which no two programs share. */
const requests = new Map<string, number>();
const timers = new Map<number, NodeJS.Timeout>();
let lastId = 0;
let engine = data.engine;
let instance = await makeInstance(engine);
let isRunning = false;
/** False after an error of the stripper, which other programs would meet, too. */
let isSound = true;

const report = (message: ThreadReport): void => parentPort?.postMessage(message);

async function makeInstance(of: Engine): Promise<Instance> {
  return Instance.create(of, {
    write: (stream, text) => output.write(stream, text),
    request(id, type, payload) {
      // The guest queues its requests. A program that found its way around it gets no answer.
      if (requests.size >= maxRequestsAtOnce) return;
      const wireId = String(++lastId);
      requests.set(wireId, id);
      const isTooLarge = Buffer.byteLength(payload) > maxRequestBytes;
      report({
        ...{ type: "request", id: wireId, request: type },
        payload: isTooLarge ? undefined : payload,
      });
    },
    startTimer(id, delayMs) {
      if (timers.size >= maxTimers) return;
      stopTimer(id);
      const waitMs = Math.min(Math.max(delayMs, 0), maxDelayMs) || 0;
      timers.set(
        id,
        setTimeout(() => {
          timers.delete(id);
          void go(() => instance.fire(id));
        }, waitMs),
      );
    },
    stopTimer,
  });
}

function stopTimer(id: number): void {
  clearTimeout(timers.get(id));
  timers.delete(id);
}

async function run(program: Program, of: Engine): Promise<void> {
  output.clear();
  if (of.memoryBytes !== engine.memoryBytes) {
    engine = of;
    instance = await makeInstance(engine);
  }
  isRunning = true;
  await go(async () => {
    const prepared = prepare(program);
    if (prepared === undefined) {
      isSound = false;
      return { kind: "failed", message: "SyntaxError: The program nests too deeply" };
    }
    if ("mistake" in prepared) return syntaxFailure(prepared.mistake);
    const name = program.language === "typescript" ? "program.ts" : "program.js";
    const script: Script = { name, source: prepared.source };
    return instance.run(script);
  });
}

function prepare({ code, language }: Program): ReturnType<typeof prepareSource> | undefined {
  try {
    return prepareSource(code, language);
  } catch {
    return undefined;
  }
}

/** Takes the program a step further. */
async function go(step: () => Promise<Outcome | undefined>): Promise<void> {
  if (!isRunning) return;
  const outcome = await step();
  if (outcome !== undefined) await end(outcome);
  else if (requests.size === 0 && timers.size === 0) await end(instance.stuck());
}

async function end(outcome: Outcome): Promise<void> {
  isRunning = false;
  for (const id of timers.keys()) stopTimer(id);
  requests.clear();
  const isReusable = isSound && instance.isSound && instance.usedBytes <= reusedMemoryBytes;
  report({ type: "end", outcome, isReusable });
  if (!isReusable) return;
  engine = data.engine;
  instance = await makeInstance(engine);
  report({ type: "ready" });
}

parentPort?.on("message", (command: ThreadCommand) => {
  if (command.type === "run") return void run(command.program, command.engine);
  const id = requests.get(command.id);
  requests.delete(command.id);
  if (id === undefined) return;
  const line = Buffer.from(command.line).toString("utf8");
  void go(() => instance.answer(id, line));
});
// The stripper warns of being experimental. What a thread prints keeps its process alive.
process.emitWarning = () => undefined;
// The first time takes 40 ms.
prepareSource("0 as number", "typescript");
report({ type: "ready" });
