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

function encodeText(text: string): string {
  return quote(shortened(text));
}

/** A text that is too long for a line keeps its beginning, and ends with digits of its digest. */
export function shortened(text: string, maxBytes = maxTextBytes): string {
  if (fits(text, maxBytes)) return text;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, digestDigits);
  const end = `…sha256:${digest}`;
  const spareBytes = maxBytes - Buffer.byteLength(quote(end)) + 2;
  let [length, tooLong] = [0, Math.min(text.length, maxBytes) + 1];
  while (tooLong - length > 1) {
    const middle = Math.floor((length + tooLong) / 2);
    if (fits(text.slice(0, middle), spareBytes)) length = middle;
    else tooLong = middle;
  }
  // Half of a pair is no character.
  const isPairCut = (text.codePointAt(length - 1) ?? 0) > 0xffff;
  return text.slice(0, isPairCut ? length - 1 : length) + end;
}

/** Whether the quoted text is that short. No character takes less than a byte. */
function fits(text: string, bytes: number): boolean {
  return text.length <= bytes && Buffer.byteLength(quote(text)) <= bytes;
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
