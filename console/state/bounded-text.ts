/** Text that comes in pieces, of which the end is kept. */

export interface BoundedText {
  readonly text: string;
  /** Whether there was more before it. */
  readonly isCut: boolean;
}

export const emptyText: BoundedText = { text: "", isCut: false };

/** Adds a piece and keeps the last `maxLength` characters, from a line's beginning if it can. */
export function appendText(before: BoundedText, piece: string, maxLength: number): BoundedText {
  const text = before.text + piece;
  if (text.length <= maxLength) return { text, isCut: before.isCut };
  const end = text.slice(-maxLength);
  const lineEnd = end.indexOf("\n");
  return { text: lineEnd === -1 ? end : end.slice(lineEnd + 1), isCut: true };
}

/**
 * Joins the stored end of a text with pieces that came live meanwhile, some of which are in the
 * stored text already: the longest overlap counts once.
 */
export function joinTexts(stored: BoundedText, live: BoundedText, maxLength: number): BoundedText {
  if (live.text !== "" && live.text.endsWith(stored.text)) return live;
  const overlap = overlapLength(stored.text, live.text);
  return appendText(stored, live.text.slice(overlap), maxLength);
}

/** The length of the longest end of `left` that `right` begins with, in linear time. */
function overlapLength(left: string, right: string): number {
  const fallbacks = [0];
  let length = 0;
  const advance = (character: string | undefined, isWhole: boolean): void => {
    while (length > 0 && (isWhole || character !== right[length])) {
      length = fallbacks[length - 1] ?? 0;
      isWhole = false;
    }
    if (character === right[length]) length += 1;
  };
  for (let at = 1; at < right.length; at += 1) {
    advance(right[at], false);
    fallbacks.push(length);
  }
  length = 0;
  if (right === "") return 0;
  for (const character of left.slice(-right.length).split("")) {
    advance(character, length === right.length);
  }
  return length;
}
