/**
 * Deceptive characters: they make a text look like another on a terminal, in a log or in a list.
 */

/**
 * Control characters, line ends, direction marks and invisible characters. Joiners and variation
 * selectors are allowed: many scripts and emoji need them.
 */
const deceptive =
  /[[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]--[\u200c\u200d\p{Variation_Selector}]]/v;
const everyDeceptive = new RegExp(deceptive, "gv");

export function isDeceptive(text: string): boolean {
  return deceptive.test(text);
}

/** The text with spaces instead of deceptive characters. */
export function withoutDeceptive(text: string): string {
  return text.replace(everyDeceptive, " ");
}
