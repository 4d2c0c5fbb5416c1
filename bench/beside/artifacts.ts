/**
 * Calls with files of the filesystem store, by both workers in turns.
 */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { ToolCall } from "../../harness/messages.ts";
import { defaultSessionId, defaultUserId } from "../../harness/options/defaults.ts";
import { openStore } from "../../worker/artifacts/open.ts";
import { namespace, startTimeoutMs } from "../environment.ts";
import { processSeconds } from "../sizing/processor.ts";
import type { BesideWorker } from "./worker.ts";

/** Rounds before those that count. */
const warmUpRounds = 1;

/** Milliseconds before a call: a sandbox is ready again, and files of the last call are gone. */
const pauseMs = 500;

const large = { name: "large.bin", bytes: 512 * 1024 * 1024 };
const small = Array.from({ length: 100 }, (_, index) => ({
  name: `small-${index}.bin`,
  bytes: 10_000,
}));
const blockBytes = 1024 * 1024;

/** Functions of `bench_files`, each a tool of its name. */
const functions = { take: "take", passOn: "pass_on" } as const;

/** Manifest entries of the tools. */
export const artifactEntries = Object.fromEntries(
  Object.values(functions).map((name) => [name, entryOf(name)]),
);

/** With the rounds that count. */
const calls = {
  "512 MB in": { call: callOf(functions.take, [large]), rounds: 7 },
  "512 MB in and out": { call: callOf(functions.passOn, [large]), rounds: 7 },
  "100 inputs of 10 KB": { call: callOf(functions.take, small), rounds: 40 },
} as const;

/**
 * The least of each that one of a worker's calls took, in milliseconds: memory that the machine has
 * not used lately takes a call up to twice the time.
 */
export interface ArtifactSide {
  readonly wallMs: number;
  /** Processor time of worker, copies and sandboxes; undefined where nobody counts it. */
  readonly cpuMs: number | undefined;
  /** Processor time of the worker's event loop. */
  readonly loopMs: number;
}

/** Calls of one kind. */
export interface ArtifactRow {
  readonly what: string;
  readonly before: ArtifactSide;
  readonly after: ArtifactSide;
}

/** Makes all calls, with artifacts that it puts below `storePath`. */
export async function measureArtifactCalls(
  [before, after]: readonly [BesideWorker, BesideWorker],
  storePath: string,
): Promise<readonly ArtifactRow[]> {
  await fillStore(storePath);
  const output = join(
    storePath,
    namespace,
    defaultUserId,
    defaultSessionId,
    `passed-${large.name}`,
  );
  const rows: ArtifactRow[] = [];
  for (const [what, { call, rounds }] of Object.entries(calls)) {
    const series = [new Series(before, call), new Series(after, call)] as const;
    for (let round = -warmUpRounds; round < rounds; round++) {
      // Neither is always the first.
      for (const each of round % 2 === 0 ? series : series.toReversed()) {
        await each.run(round >= 0);
        await rm(output, { recursive: true, force: true });
      }
    }
    rows.push({ what, before: series[0].least, after: series[1].least });
  }
  return rows;
}

async function fillStore(basePath: string): Promise<void> {
  await using store = await openStore({ kind: "filesystem", basePath });
  const signal = AbortSignal.timeout(startTimeoutMs);
  await store.check(signal);
  const scope = { root: namespace, userId: defaultUserId, sessionId: defaultSessionId };
  const metadata = { mimeType: "application/octet-stream" };
  for (const { name, bytes: sizeBytes } of [large, ...small]) {
    const open = () => Readable.from(blocksOf(sizeBytes));
    await store.save(scope, name, { sizeBytes, open }, metadata, signal);
  }
}

function* blocksOf(sizeBytes: number): Generator<Buffer> {
  const block = randomBytes(Math.min(sizeBytes, blockBytes));
  for (let left = sizeBytes; left > 0; left -= blockBytes) yield block.subarray(0, left);
}

function entryOf(name: string): object {
  return {
    ...{ module: "bench_files", function: name, sandbox_profile: "permissive" },
    ...{ start: "template", warm: { min: 1, max: 1 } },
  };
}

function callOf(tool: string, files: readonly { readonly name: string }[]): ToolCall {
  const references = files.map(
    ({ name }, index) => [`files[${index}]`, { filename: name, version: 0 }] as const,
  );
  return { tool, references: new Map(references) };
}

/** One worker's calls of one kind. */
class Series {
  readonly #worker: BesideWorker;
  readonly #call: ToolCall;
  readonly #sides: ArtifactSide[] = [];

  constructor(worker: BesideWorker, call: ToolCall) {
    this.#worker = worker;
    this.#call = call;
  }

  get least(): ArtifactSide {
    const cpuMs = this.#sides.flatMap((side) => side.cpuMs ?? []);
    return {
      wallMs: Math.min(...this.#sides.map((side) => side.wallMs)),
      cpuMs: cpuMs.length === 0 ? undefined : Math.min(...cpuMs),
      loopMs: Math.min(...this.#sides.map((side) => side.loopMs)),
    };
  }

  async run(isCounted: boolean): Promise<void> {
    await new Promise((done) => setTimeout(done, pauseMs));
    const start = await this.#now();
    await this.#worker.call(this.#call);
    const end = await this.#now();
    if (!isCounted) return;
    const isMeasured = start.cpuMs !== undefined && end.cpuMs !== undefined;
    this.#sides.push({
      wallMs: end.wallMs - start.wallMs,
      cpuMs: isMeasured ? end.cpuMs - start.cpuMs : undefined,
      loopMs: end.loopMs - start.loopMs,
    });
  }

  /** Clock and processor times so far. */
  async #now(): Promise<ArtifactSide> {
    const { cpuSeconds, pid } = this.#worker;
    const { loop } = await processSeconds(pid);
    const cpuMs = cpuSeconds === undefined ? undefined : cpuSeconds * 1000;
    return { wallMs: performance.now(), cpuMs, loopMs: loop * 1000 };
  }
}
