/**
 * Untrusted text for people.
 */

/**
 * Escapes control characters: a tool's message must not move the cursor, change colours or reverse
 * the direction. Newlines and tabs stay; JSON keeps its value.
 */
export function printable(text: string): string {
  return text.replace(
    /[^\P{Cc}\n\t]|\p{Bidi_Control}/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
