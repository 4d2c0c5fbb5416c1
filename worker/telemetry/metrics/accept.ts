/**
 * What a header `Accept` says of media types (RFC 9110, 12.5.1).
 */

/** A weight: 0 to 1, at most three decimals. */
const weight = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i;

/**
 * The weight of a media type, 0 to 1: that of the range that names it most exactly, and the highest
 * of equal ones. 0: not acceptable. Parameters other than weights are ignored.
 */
export function qualityOf(mediaType: string, accept: string): number {
  const ranges = accept.split(",").map(parseRange);
  const [type] = mediaType.split("/");
  for (const range of [mediaType, `${type}/*`, "*/*"]) {
    const weights = ranges.filter(({ name }) => name === range).map(({ quality }) => quality);
    if (weights.length > 0) return Math.max(...weights);
  }
  return 0;
}

/** A malformed weight counts as none, which is 1. */
function parseRange(text: string): { readonly name: string; readonly quality: number } {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim());
  const found = parameters.map((part) => weight.exec(part)?.[1]).find((q) => q !== undefined);
  return { name: name.toLowerCase(), quality: Number(found ?? 1) };
}
