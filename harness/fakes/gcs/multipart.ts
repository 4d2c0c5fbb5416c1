/**
 * Facts and content in one body: Cloud Storage, "Uploads: multipart".
 */
import { GcsFakeError } from "./errors.ts";
import type { SentFacts } from "./objects.ts";
import type { GcsRequest } from "./request.ts";

const headEnd = "\r\n\r\n";

/** Throws GcsFakeError for a body of another form. */
export function readMultipart(
  request: GcsRequest,
  body: Buffer,
): { readonly facts: SentFacts; readonly content: Buffer } {
  const type = request.header("content-type") ?? "";
  const [, quoted, plain] = /boundary=(?:"([^"]+)"|([^;\s]+))/.exec(type) ?? [];
  const between = `\r\n--${quoted ?? plain}`;
  const facts = { start: body.indexOf(headEnd) + headEnd.length, end: body.indexOf(between) };
  const content = {
    start: body.indexOf(headEnd, facts.end) + headEnd.length,
    end: body.lastIndexOf(`${between}--`),
  };
  const isWhole =
    facts.end >= facts.start && content.start > facts.end && content.end >= content.start;
  if (!isWhole) throw new GcsFakeError(400, "badContent", "Malformed multipart body.");
  const head = body.toString("latin1", facts.end, content.start);
  const contentType = /^content-type: *(.*?)\r?$/im.exec(head)?.[1];
  return {
    facts: insertFacts(request, {
      ...(contentType !== undefined && { contentType }),
      ...readFacts(body.subarray(facts.start, facts.end)),
    }),
    content: body.subarray(content.start, content.end),
  };
}

/** Facts as JSON; none in an empty text. Throws GcsFakeError. */
export function readFacts(text: Buffer): Partial<SentFacts> {
  try {
    return text.byteLength === 0 ? {} : (JSON.parse(text.toString()) as Partial<SentFacts>);
  } catch {
    throw new GcsFakeError(400, "parseError", "Parse Error");
  }
}

/** The facts of a new object, by body and query. Throws GcsFakeError without a usable name. */
export function insertFacts({ query, header }: GcsRequest, facts: Partial<SentFacts>): SentFacts {
  const name = query.get("name") ?? facts.name ?? "";
  const bytes = Buffer.byteLength(name);
  if (bytes === 0) throw new GcsFakeError(400, "required", "Required");
  if (bytes > 1024) throw new GcsFakeError(400, "invalid", "The name is longer than 1024 bytes.");
  if (/[\r\n]/.test(name)) throw new GcsFakeError(400, "invalid", "The name has a line end.");
  const contentType = facts.contentType ?? header("x-upload-content-type");
  const kmsKeyName = query.get("kmsKeyName");
  return {
    ...facts,
    name,
    ...(contentType !== undefined && { contentType }),
    ...(kmsKeyName !== null && { kmsKeyName }),
  };
}
