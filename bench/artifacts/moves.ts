/**
 * Times how inputs and outputs of a call move between work directory and store, beside the bare
 * means, in one run.
 */
import { type FileHandle, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ArtifactStore, SavedArtifact } from "../../worker/artifacts/store.ts";
import { saveOutputs } from "../../worker/invocation/steps/collect.ts";
import { Transfers } from "../../worker/invocation/steps/transfers.ts";
import { stageArtifacts } from "../../worker/invocation/steps/stage.ts";
import type { Invocation } from "../../worker/protocol/invocation.ts";
import { systemClock } from "../../worker/support/clock.ts";
import { createLogger } from "../../worker/telemetry/logger.ts";
import { newWorkDir } from "../../test/support/sandboxes/work-dir.ts";
import { type Row, type Timing, measure, timed } from "../measure.ts";
import type { Place } from "./places.ts";

/** Bytes of the artifacts, with the part of the rounds that each is moved in. */
export const sizes = [
  { bytes: 1_000, part: 1 },
  { bytes: 1_000_000, part: 1 },
  { bytes: 100_000_000, part: 0.1 },
] as const;

/** Rounds of a size, at least. */
const minRounds = 3;

const never = new AbortController().signal;

const transfers = new Transfers();

/** The scope of all artifacts here. */
export const scope = { root: "bench", userId: "user", sessionId: "session" };

/** How long a move takes; times in milliseconds. */
export interface Move {
  readonly store: string;
  readonly work: "stage" | "collect";
  readonly bytes: number;
  readonly medianMs: number;
  readonly p90Ms: number;
  /** The median of the same bytes moved by the bare means. */
  readonly bareMedianMs: number;
}

/** Moves artifacts of all sizes to and from each place. */
export async function measureMoves(
  base: string,
  places: readonly Place[],
  rounds: number,
): Promise<readonly Move[]> {
  const moves: Move[] = [];
  for (const { bytes, part } of sizes) {
    const path = join(base, `${bytes}.bin`);
    await writeFile(path, Buffer.alloc(bytes, "content "));
    await using file = await open(path);
    const subjects = places.flatMap((place) => subjectsOf(place, { path, file, bytes }));
    for (const { prepare } of subjects) await prepare();
    const rows = subjects.flatMap(({ own, bare }) => [own, bare]);
    const counted = Math.max(minRounds, Math.round(rounds * part));
    const measured = await measure(rows, counted, () => Promise.resolve(), minRounds);
    for (const [index, { place, work }] of subjects.entries()) {
      const [own, bare] = [measured[2 * index], measured[2 * index + 1]];
      if (own === undefined || bare === undefined) continue;
      const { medianMs, p90Ms } = own;
      moves.push({ store: place.name, work, bytes, medianMs, p90Ms, bareMedianMs: bare.medianMs });
    }
  }
  return moves;
}

interface Content {
  readonly path: string;
  readonly file: FileHandle;
  readonly bytes: number;
}

interface Subject {
  readonly place: Place;
  readonly work: Move["work"];
  readonly own: Row;
  readonly bare: Row;
  prepare(): Promise<void>;
}

function subjectsOf(place: Place, content: Content): readonly Subject[] {
  const { bare, bindsShared = false } = place;
  const { path, bytes } = content;
  const [input, output] = [`in-${bytes}.bin`, `out-${bytes}.bin`];
  const target = `${path}.got`;
  const subjects: readonly Subject[] = [
    {
      place,
      work: "stage",
      own: row(() => stage(place.store, input, bindsShared)),
      bare: row(async () => {
        const timing = await timed(() => bare.get(input, target).then(() => undefined))();
        await rm(target);
        return timing;
      }),
      prepare: async () => {
        await collect(place.store, input, content);
        await bare.put(path, input);
      },
    },
    {
      place,
      work: "collect",
      own: row(async () => {
        const { timing, saved } = await collect(place.store, output, content);
        await place.store.deleteVersion(scope, output, saved, never);
        return timing;
      }),
      bare: row(async () => {
        const timing = await timed(() => bare.put(path, output).then(() => undefined))();
        await bare.remove(output);
        return timing;
      }),
      prepare: () => Promise.resolve(),
    },
  ];
  return subjects.filter(({ work }) => work === "stage" || !bindsShared);
}

function row(run: Row["run"]): Row {
  return { name: "", kind: "floor", isAlone: true, run };
}

/** Loads an artifact into a new work directory, as a call does. */
export async function stage(
  store: ArtifactStore,
  filename: string,
  bindsShared = false,
): Promise<Timing> {
  await using workDir = await newWorkDir(tmpdir(), bindsShared);
  const invocation = invocationOf(filename);
  const unlimited = Number.MAX_SAFE_INTEGER;
  const limits = { maxBytes: unlimited, callMaxBytes: unlimited };
  const origin = { store, scope, limits, diskBytes: unlimited, transfers };
  return await timed(async () => {
    await stageArtifacts(invocation, workDir, origin, never);
    return undefined;
  })();
}

/** Saves a file as an output of a call. */
export async function collect(
  store: ArtifactStore,
  filename: string,
  content: Omit<Content, "path">,
): Promise<{ readonly timing: Timing; readonly saved: SavedArtifact }> {
  const saves: SavedArtifact[] = [];
  const recording: Pick<ArtifactStore, "save" | "deleteVersion"> = {
    deleteVersion: store.deleteVersion.bind(store),
    async save(...args) {
      const saved = await store.save(...args);
      saves.push(saved);
      return saved;
    },
  };
  const { file: handle, bytes: sizeBytes } = content;
  const outputs = [
    { filename, mimeType: "application/octet-stream", sizeBytes, description: undefined, handle },
  ];
  const collection = {
    store: recording,
    scope,
    transfers,
    limits: {
      ...{ maxBytes: sizeBytes, callMaxBytes: sizeBytes, maxOutputs: 1 },
      ...{ fileSizeBytes: sizeBytes, diskBytes: sizeBytes },
    },
    clock: systemClock,
    log: createLogger("warn", process.stderr.fd),
    limitMs: 600_000,
  };
  const timing = await timed(async () => {
    await saveOutputs(outputs, collection, never);
    return undefined;
  })();
  const [saved] = saves;
  if (saved === undefined) throw new Error("nothing was saved");
  return { timing, saved };
}

function invocationOf(filename: string): Invocation {
  return {
    id: "id",
    taskId: "task",
    toolName: "tool",
    args: {},
    toolConfig: {},
    caller: { appName: "agent", userId: scope.userId, sessionId: scope.sessionId },
    references: new Map([["input", { filename, version: 0 }]]),
    preloaded: new Map(),
    timeoutSeconds: undefined,
    requestedProfile: undefined,
    replyTo: "reply",
    statusTo: undefined,
    sentAtMs: 0,
  };
}
