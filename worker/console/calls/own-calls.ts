/**
 * The calls that the console makes: requests as agents send them, and their answers.
 */
import { LRUCache } from "lru-cache";
import { InvocationError } from "../../protocol/errors.ts";
import { invokeMethod } from "../../protocol/messages/request.ts";
import { encodeResponse } from "../../protocol/messages/response.ts";
import { invokeTopic, responseTopic } from "../../protocol/topics.ts";
import { newId } from "../../support/ids.ts";
import { type Json, type JsonObject, isJsonObject, parseJson } from "../../support/json/json.ts";
import type { ArtifactView, InputReference, NewCall } from "../api.ts";
import type { LocalCalls } from "./local-session.ts";

/** Calls whose requests and answers are kept, and bytes of them. */
const maxKept = 100;
const maxKeptBytes = 32 * 1024 * 1024;
/** Values of an answer that is shown. */
const answerLimits = { depth: 200, values: 1_000_000 };

/** Whose calls and artifacts the console's are: agent, user and session. */
export const consoleCaller = { appName: "console", userId: "console", sessionId: "console" };

/** A call as far as it is kept. */
export interface OwnCall {
  readonly request: Pick<NewCall, "arguments" | "inputs">;
  /** Undefined before the answer, and for one with too many values. */
  readonly answer: JsonObject | undefined;
  /** In the order of the answer. */
  readonly artifacts: readonly ArtifactView[];
}

/** As text: parsed values take ten times the memory. */
interface Kept {
  readonly request: Buffer;
  readonly answer: Uint8Array | undefined;
}

/** Makes calls. */
export class OwnCalls {
  readonly #namespace: string;
  readonly #local: Pick<LocalCalls, "deliver">;
  readonly #kept = new LRUCache<string, Kept>({
    max: maxKept,
    maxSize: maxKeptBytes,
    sizeCalculation: ({ request, answer }) => request.byteLength + (answer?.byteLength ?? 0),
  });
  /** Calls without an end. */
  readonly #open = new Set<string>();

  constructor(namespace: string, local: Pick<LocalCalls, "deliver">) {
    this.#namespace = namespace;
    this.#local = local;
  }

  /** Makes a call. Its id; undefined while the worker takes none. */
  make(call: NewCall): string | undefined {
    const id = newId();
    const { arguments: args, inputs } = call;
    const payload = Buffer.from(JSON.stringify(requestOf(id, call)));
    const request = Buffer.from(JSON.stringify({ arguments: args, inputs }));
    let isAnswered = false;
    const keep = (answer: Uint8Array | undefined): void => {
      isAnswered = answer !== undefined;
      this.#kept.set(id, { request, answer });
    };
    this.#open.add(id);
    keep(undefined);
    const isTaken = this.#local.deliver({
      topic: invokeTopic(this.#namespace, call.tool),
      replyTo: responseTopic(this.#namespace, consoleCaller.appName, id),
      payload,
      onAnswer: keep,
      onSettled: () => {
        this.#open.delete(id);
        // Requeued: no broker has the call.
        if (!isAnswered) keep(encodeResponse(id, { kind: "error", error: notStarted(), ...took }));
      },
    });
    if (isTaken) return id;
    this.#open.delete(id);
    this.#kept.delete(id);
    return undefined;
  }

  /** Whether the console made this call, which has not been settled. */
  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Undefined for calls of agents, and for those that are forgotten. */
  get(id: string): OwnCall | undefined {
    const kept = this.#kept.peek(id);
    if (kept === undefined) return undefined;
    const answer = kept.answer && readAnswer(kept.answer);
    const request = JSON.parse(kept.request.toString()) as OwnCall["request"];
    return { request, answer, artifacts: artifactsOf(answer) };
  }
}

const took = { executionTimeMs: 0 };

function notStarted(): InvocationError {
  const message = "The worker stopped, or serves the tool no longer, before the call was answered";
  return new InvocationError("TOOL_NOT_AVAILABLE", message);
}

function artifactsOf(answer: JsonObject | undefined): readonly ArtifactView[] {
  const result = answer?.["result"];
  const created = isJsonObject(result) ? result["created_artifacts"] : undefined;
  if (!Array.isArray(created)) return [];
  return created.flatMap((each: unknown) => (isJsonObject(each) ? artifactOf(each) : []));
}

function artifactOf(created: JsonObject): ArtifactView {
  const { filename, version, mime_type, size_bytes, description } = created;
  return {
    filename: textOf(filename),
    version: Number(version),
    mimeType: textOf(mime_type),
    sizeBytes: Number(size_bytes),
    description: typeof description === "string" ? description : null,
  };
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

function readAnswer(payload: Uint8Array): JsonObject | undefined {
  try {
    const answer = parseJson(payload, answerLimits);
    return isJsonObject(answer) ? answer : undefined;
  } catch {
    // It has too many values.
    return undefined;
  }
}

/** A request as agents send it (design document, section 5). */
function requestOf(id: string, call: NewCall): object {
  const { tool, arguments: args, inputs, toolConfig, profile, timeoutSeconds } = call;
  const { appName, userId, sessionId } = consoleCaller;
  return {
    jsonrpc: "2.0",
    id,
    method: invokeMethod,
    params: {
      ...{ task_id: id, tool_name: tool, tool_config: toolConfig },
      args: { ...filenamesOf(inputs), ...args },
      ...{ app_name: appName, user_id: userId, session_id: sessionId },
      artifact_references: referencesOf(inputs),
      ...{ timeout_seconds: timeoutSeconds, sandbox_profile: profile },
    },
  };
}

type Input = InputReference | readonly InputReference[];

/** What parameters get without an argument of their own. */
function filenamesOf(inputs: NewCall["inputs"]): object {
  const entries = Object.entries(inputs).map(([parameter, input]) => {
    const names = isList(input) ? input.map(({ filename }) => filename) : input.filename;
    return [parameter, names] as const;
  });
  return Object.fromEntries(entries);
}

/** List parameters use `param[0]`, `param[1]`. */
function referencesOf(inputs: NewCall["inputs"]): object {
  const entries = Object.entries(inputs).flatMap(([parameter, input]) =>
    isList(input)
      ? input.map((each, index) => [`${parameter}[${index}]`, each] as const)
      : [[parameter, input] as const],
  );
  return Object.fromEntries(entries);
}

function isList(input: Input): input is readonly InputReference[] {
  return Array.isArray(input);
}
