/**
 * The calls that the console makes: requests as agents send them, and their answers.
 */
import { LRUCache } from "lru-cache";
import { invokeMethod } from "../../protocol/messages/request.ts";
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

/** What is kept of a call. */
export interface OwnCall {
  readonly request: Pick<NewCall, "arguments" | "inputs">;
  /** Undefined before its answer, and where it is not JSON. */
  readonly answer: JsonObject | undefined;
}

/** Makes calls. */
export class OwnCalls {
  readonly #namespace: string;
  readonly #local: Pick<LocalCalls, "deliver">;
  readonly #kept = new LRUCache<string, OwnCall & { readonly bytes: number }>({
    max: maxKept,
    maxSize: maxKeptBytes,
    sizeCalculation: ({ bytes }) => bytes,
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
    const request = { arguments: args, inputs };
    const keep = (answer: JsonObject | undefined, bytes: number): void =>
      void this.#kept.set(id, { request, answer, bytes: payload.byteLength + bytes });
    this.#open.add(id);
    keep(undefined, 0);
    const isTaken = this.#local.deliver({
      topic: invokeTopic(this.#namespace, call.tool),
      replyTo: responseTopic(this.#namespace, consoleCaller.appName, id),
      payload,
      onAnswer: (answer) => keep(readAnswer(answer), answer.byteLength),
      onSettled: () => void this.#open.delete(id),
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

  /** Undefined for calls of others, and where nothing is left. */
  get(id: string): OwnCall | undefined {
    return this.#kept.peek(id);
  }

  /** The created artifacts of a call, in the order of its answer. */
  artifactsOf(id: string): readonly ArtifactView[] {
    const result = this.get(id)?.answer?.["result"];
    const created = isJsonObject(result) ? result["created_artifacts"] : undefined;
    if (!Array.isArray(created)) return [];
    return created.flatMap((each: unknown) => (isJsonObject(each) ? artifactOf(each) : []));
  }
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
    // Too many values to be shown.
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
