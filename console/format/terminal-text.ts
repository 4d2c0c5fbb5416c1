/** Output of programs for a page: what moves a terminal's cursor is taken out. */

/** Escape sequences of ECMA-48: control sequences, operating system commands, and short ones. */
const escapes = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g;
const controls = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** Removes escape sequences and shows other control characters as `�`. */
export function plainText(text: string): string {
  return text
    .replace(escapes, "")
    .replaceAll("\r\n", "\n")
    .replace(/\r/g, "\n")
    .replace(controls, "�");
}
