import ms from "ms";

/**
 * The milliseconds of a duration such as "2 days".
 *
 * @param {{ text: string }} args
 */
export function duration({ text }) {
  return ms(text);
}
