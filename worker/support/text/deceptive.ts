/**
 * Characters that make a text look like another one: on a terminal, in a log, in a list of names.
 */

/**
 * Control characters, ends of lines, those that turn the direction of others, and those that nobody
 * sees. Joiners and variation selectors are none of them: words of many scripts, and emoji, are
 * spelt with them.
 */
const deceptive =
  /[[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]--[\u200c\u200d\p{Variation_Selector}]]/v;
const everyDeceptive = new RegExp(deceptive, "gv");

export function isDeceptive(text: string): boolean {
  return deceptive.test(text);
}

/** The text with a space in the place of each such character. */
export function withoutDeceptive(text: string): string {
  return text.replace(everyDeceptive, " ");
}
