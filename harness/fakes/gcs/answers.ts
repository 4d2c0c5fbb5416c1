/**
 * Answers to requests, and the conditions of these.
 */
import type { Conditions } from "./objects.ts";
import type { GcsRequest } from "./request.ts";

/** An answer to send. */
export interface GcsAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export function conditionsOf({ query }: GcsRequest): Conditions {
  return {
    ifGenerationMatch: query.get("ifGenerationMatch") ?? undefined,
    ifGenerationNotMatch: query.get("ifGenerationNotMatch") ?? undefined,
  };
}

export function answer(
  status: number,
  body: Buffer = Buffer.alloc(0),
  headers: GcsAnswer["headers"] = {},
): GcsAnswer {
  return { status, headers, body };
}

export function json(value: object, status = 200): GcsAnswer {
  const headers = { "content-type": "application/json; charset=UTF-8" };
  return answer(status, Buffer.from(JSON.stringify(value)), headers);
}
