/**
 * Bodies of requests.
 */
import type { IncomingMessage } from "node:http";
import { type JsonObject, JsonError, isJsonObject, parseJson } from "../../support/json/json.ts";
import { HttpError } from "./failure.ts";

/** Bytes of a JSON body: no request to a tool is larger (`maxMessageBytes`). */
const maxJsonBytes = 10 * 1024 * 1024;

/** Reads a JSON object. Throws HttpError. */
export async function readJsonObject(request: IncomingMessage): Promise<JsonObject> {
  if (!/^application\/json\b/.test(request.headers["content-type"] ?? ""))
    throw new HttpError(415, "BAD_REQUEST", "The body has to be application/json");
  const tooLarge = new HttpError(413, "TOO_LARGE", `The body has more than ${maxJsonBytes} bytes`);
  if (Number(request.headers["content-length"]) > maxJsonBytes) throw tooLarge;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > maxJsonBytes) throw tooLarge;
    chunks.push(chunk);
  }
  const value = parse(Buffer.concat(chunks));
  if (!isJsonObject(value)) throw new HttpError(400, "BAD_REQUEST", "The body is not an object");
  return value;
}

function parse(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new HttpError(400, "BAD_REQUEST", `The body is ${error.message}`);
  }
}
