/**
 * Encodes a line of the audit log: one JSON object that no name in it can break or imitate.
 */
import { createHash } from "node:crypto";
import { type AuditLine, auditFields } from "./event.ts";

/**
 * Longest line in bytes, with its end. One less than PIPE_BUF (limits.h): an append of that size is
 * atomic on pipes too, and may follow a line end that closes a torn line.
 */
export const maxLineBytes = 4_095;

/** Longest encoded text in bytes, with its quotes; a line has seven texts of a caller. */
const maxTextBytes = 512;
/** Hex digits of the SHA-256 that ends a shortened text. */
const digestDigits = 16;

const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

const fields = Object.keys(auditFields) as readonly (keyof typeof auditFields)[];

/** The line in UTF-8, with its end. */
export function encodeLine(line: AuditLine): Buffer {
  const members = fields.flatMap((field) => {
    const value = line[field];
    if (value === undefined) return [];
    return [`"${field}":${typeof value === "string" ? encodeText(value) : JSON.stringify(value)}`];
  });
  return Buffer.from(`{${members.join(",")}}\n`);
}

/** A longer text keeps its beginning, and ends with `…sha256:` and digits of its digest. */
function encodeText(text: string): string {
  const whole = text.length <= maxTextBytes ? quote(text) : "";
  if (whole !== "" && Buffer.byteLength(whole) <= maxTextBytes) return whole;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, digestDigits);
  const end = `…sha256:${digest}`;
  let spareBytes = maxTextBytes - Buffer.byteLength(quote(end));
  let start = "";
  for (const character of text) {
    spareBytes -= Buffer.byteLength(quote(character)) - 2;
    if (spareBytes < 0) break;
    start += character;
  }
  return quote(start + end);
}

/** JSON in which control, invisible and direction characters are escaped, too. */
function quote(text: string): string {
  return JSON.stringify(text).replace(hidden, (character) =>
    Array.from(
      { length: character.length },
      (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}
