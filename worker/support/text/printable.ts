/**
 * Text of others, for people to read.
 */

/**
 * Text of others with its control characters spelled out: a tool's message must not move the
 * cursor, change colours or reverse the reading direction of what stands beside it. Newlines and
 * tabs stay; JSON stays the same JSON.
 */
export function printable(text: string): string {
  return text.replace(
    /[^\P{Cc}\n\t]|\p{Bidi_Control}/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
