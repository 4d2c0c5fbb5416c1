/**
 * What the worker and the page of its console send each other: JSON over HTTP, and server-sent
 * events. The page imports these types, and nothing else of the worker.
 *
 * | request                              | body                     | answer                        |
 * |--------------------------------------|--------------------------|-------------------------------|
 * | `GET /api/events`                    |                          | an event stream; see below    |
 * | `PUT /api/inputs/NAME`               | the bytes of the file    | 201, {@link StoredInput}      |
 * | `POST /api/calls`                    | {@link NewCall}          | 201, `{"id": "…"}`            |
 * | `GET /api/calls/ID`                  |                          | 200, {@link CallDetail}       |
 * | `POST /api/calls/ID/cancel`          |                          | 202; 409 for an ended call    |
 * | `GET /api/calls/ID/artifacts/NUMBER` |                          | 200, the bytes                |
 *
 * Each request has the token in the header `Authorization: Bearer TOKEN`, and is 401 without it. An
 * error is a {@link Failure}.
 *
 * The stream has these events, each with JSON as `data`: `state` ({@link WorkerView}), at the
 * beginning and when it changes; `calls` ({@link CallView} as a list, the newest first) and
 * `samples` ({@link Sample} as a list, the oldest first), at the beginning; `call`
 * ({@link CallView}), when a call changes; `status` ({@link StatusView}); `output`
 * ({@link OutputPiece}); `sample` ({@link Sample}).
 */

import type { Json, JsonObject } from "../support/json/json.ts";

/** Body of an answer with a status from 400 on. */
export interface Failure {
  readonly error: { readonly code: string; readonly message: string };
}

/** A JSON value. */
export type JsonValue = Json;

/** A JSON object. */
export type JsonMembers = JsonObject;

/** The worker as it is now. */
export interface WorkerView {
  readonly worker: {
    readonly id: string;
    readonly version: string;
    readonly namespace: string;
    readonly group: string;
    /** `dev`, `amqp` or `solace`. */
    readonly broker: string;
    readonly store: string;
    readonly startedAtMs: number;
  };
  readonly isReady: boolean;
  /** What it lacks to be ready. */
  readonly missing: readonly string[];
  /** What an operator should mend although it is ready. */
  readonly warnings: readonly string[];
  readonly queues: readonly { readonly name: string; readonly slots: number }[];
  readonly manifest: ManifestView;
  readonly tools: readonly ToolView[];
  readonly profiles: readonly ProfileView[];
  /** The doctor's findings, of each backend. */
  readonly hosts: readonly HostView[];
  /** Whether output is kept of calls that the console did not make (`TOOL_LOGS`). */
  readonly keepsOutput: boolean;
}

export interface ManifestView {
  readonly revision: string;
  /** Whether the file is in force; else the last usable one is. */
  readonly isUsable: boolean;
  /** Warnings, and why the file is not usable. */
  readonly problems: readonly string[];
  readonly unavailable: readonly { readonly tool: string; readonly reason: string }[];
}

export interface ToolView {
  readonly name: string;
  readonly runtime: "python" | "node" | "executable";
  readonly description: string | null;
  /** JSON Schema of its arguments; null while it is not known. */
  readonly parameters: JsonMembers | null;
  /** Parameters that take files. */
  readonly artifacts: readonly {
    readonly name: string;
    readonly isList: boolean;
    readonly isOptional: boolean;
  }[];
  /** Why its code could not be described. */
  readonly problem: string | null;
  /** Undefined where there is no such profile. */
  readonly profile: string | null;
  readonly queue: string;
  readonly startMode: string;
  readonly timeoutSeconds: number;
  readonly isIdempotent: boolean;
}

export interface ProfileView {
  readonly name: string;
  readonly backend: string;
  /** In words: `none`, `host`, `public`, `list`. */
  readonly network: string;
  readonly limits: readonly LimitView[];
  /** Protections that this host lacks. */
  readonly unenforced: readonly string[];
}

/** A limit, and the mechanism that enforces it. */
export interface LimitView {
  readonly limit: string;
  readonly bound: number;
  readonly unit: string;
  readonly by: string;
}

export interface HostView {
  readonly backend: string;
  readonly technology: string;
  readonly checks: readonly {
    readonly name: string;
    readonly state: "held" | "partly" | "missing";
    readonly required: boolean;
    readonly finding: string;
    readonly remedy: string | null;
  }[];
}

/** A phase of a call, in milliseconds since its receipt. */
export interface PhaseView {
  readonly step: string;
  readonly startMs: number;
  /** Null while it lasts. */
  readonly endMs: number | null;
}

/** A running or recent call, of an agent or of the console. */
export interface CallView {
  /** Within this worker's life. */
  readonly id: string;
  /** Ascending. */
  readonly number: number;
  /** Null for a tool that is not served. */
  readonly tool: string | null;
  /** Whether the console made it. */
  readonly isOwn: boolean;
  /** As its caller knows it. */
  readonly correlationId: string | null;
  readonly traceId: string | null;
  readonly queue: string | null;
  readonly deliveryCount: number;
  readonly receivedAtMs: number;
  readonly phases: readonly PhaseView[];
  /** Milliseconds to its end; null while it runs. */
  readonly durationMs: number | null;
  /** `ok`, the code of an error, or why there was no answer; null while it runs. */
  readonly outcome: string | null;
  readonly settlement: string | null;
  readonly profile: string | null;
  /** Where its sandbox came from. */
  readonly start: string | null;
  readonly backend: string | null;
  /** What was enforced, and by whom; empty before the sandbox has ended. */
  readonly limits: readonly LimitView[];
  readonly unenforced: readonly string[];
  readonly cpuMs: number | null;
  readonly peakMemoryBytes: number | null;
  /** The limit that ended it. */
  readonly limitReached: string | null;
  /** Whether the console has cancelled it. */
  readonly isCancelled: boolean;
}

/** A call with all that is kept of it. */
export interface CallDetail {
  readonly call: CallView;
  readonly statuses: readonly StatusView[];
  readonly output: readonly OutputView[];
  /** The request; null for calls of agents, whose arguments and results are not shown. */
  readonly request: Pick<NewCall, "arguments" | "inputs"> | null;
  /** As agents get it; null before the end, for calls of agents, and where it is gone. */
  readonly answer: JsonMembers | null;
  readonly artifacts: readonly ArtifactView[];
}

/** A created artifact; its number is its place in the list. */
export interface ArtifactView {
  readonly filename: string;
  readonly version: number;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly description: string | null;
}

/** A status of a tool. */
export interface StatusView {
  readonly callId: string;
  readonly atMs: number;
  readonly text: string;
}

/** What a tool prints, as it comes. */
export interface OutputPiece {
  readonly callId: string;
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

/** The end of what a tool printed. */
export interface OutputView {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
  /** Whether there was more before it. */
  readonly isCut: boolean;
}

/** A few seconds of a worker's life. */
export interface Sample {
  readonly atMs: number;
  readonly seconds: number;
  /** Calls that ended, and those of them that ended badly. */
  readonly calls: number;
  readonly errors: number;
  /** Null without calls. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly running: number;
  readonly waiting: number;
  /** Sandboxes that wait for calls, and how many there should be. */
  readonly idle: number;
  readonly idleWanted: number;
  readonly idleMemoryBytes: number;
}

/** An input in the store. */
export interface StoredInput {
  readonly filename: string;
  readonly version: number;
  readonly sizeBytes: number;
}

/** A call to make. */
export interface NewCall {
  readonly tool: string;
  readonly arguments: JsonMembers;
  /** Stored inputs by parameter; lists for parameters that take lists. */
  readonly inputs: { readonly [parameter: string]: InputReference | readonly InputReference[] };
  /** May hold secrets; not kept. */
  readonly toolConfig?: JsonMembers;
  readonly profile?: string;
  readonly timeoutSeconds?: number;
}

export type InputReference = Pick<StoredInput, "filename" | "version">;
