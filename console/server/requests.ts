/** Requests to the worker's console, by the contract of `worker/console/api.ts`. */
import type { CallDetail, Failure, NewCall } from "../../worker/console/api.ts";
import { authorization } from "./token.ts";

/** An answer with an error. */
export class RequestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Makes a call and returns its id. */
export async function makeCall(call: NewCall): Promise<string> {
  const answer = await send("POST", "/api/calls", call);
  const { id } = (await answer.json()) as { readonly id: string };
  return id;
}

export async function loadCall(id: string, signal: AbortSignal): Promise<CallDetail> {
  const answer = await send("GET", callPath(id), undefined, signal);
  return (await answer.json()) as CallDetail;
}

export async function cancelCall(id: string): Promise<void> {
  await send("POST", `${callPath(id)}/cancel`);
}

/** Where the bytes of an artifact are. */
export function artifactPath(callId: string, number: number): string {
  return `${callPath(callId)}/artifacts/${number}`;
}

/** The beginning of an artifact as text, and whether there is more. */
export async function loadText(
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly isCut: boolean }> {
  const answer = await send("GET", path, undefined, signal);
  const bytes = new Uint8Array(maxBytes);
  let length = 0;
  const reader = answer.body?.getReader();
  for (;;) {
    const part = await reader?.read();
    if (part?.value === undefined) return { text: decode(bytes, length), isCut: false };
    const fitting = part.value.subarray(0, maxBytes - length);
    bytes.set(fitting, length);
    length += fitting.byteLength;
    if (fitting.byteLength === part.value.byteLength) continue;
    await reader?.cancel();
    return { text: decode(bytes, length), isCut: true };
  }
}

/** The bytes of an artifact. */
export async function loadBlob(path: string, signal?: AbortSignal): Promise<Blob> {
  return await (await send("GET", path, undefined, signal)).blob();
}

/** What a person reads of an error. */
export function messageOf(error: unknown): string {
  if (error instanceof RequestError) return error.message;
  return error instanceof Error ? `The worker cannot be reached: ${error.message}` : String(error);
}

/** The message of an error's body, or a sentence on its status. */
export function failureMessage(status: number, body: string): string {
  try {
    return (JSON.parse(body) as Failure).error.message;
  } catch {
    return `The worker answered with status ${status}.`;
  }
}

function callPath(id: string): string {
  return `/api/calls/${encodeURIComponent(id)}`;
}

function decode(bytes: Uint8Array<ArrayBuffer>, length: number): string {
  return new TextDecoder().decode(bytes.subarray(0, length));
}

async function send(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Response> {
  const answer = await fetch(path, {
    method,
    ...(signal === undefined ? {} : { signal }),
    headers: {
      ...authorization(),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (answer.ok) return answer;
  throw new RequestError(answer.status, failureMessage(answer.status, await answer.text()));
}
