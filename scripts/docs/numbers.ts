/**
 * Numbers as documents write them.
 */

/** With a comma for thousands. */
export function thousands(value: number): string {
  return value.toLocaleString("en-US");
}

/** Bytes as MiB. */
export function mebibytes(bytes: number): string {
  return `${bytes / 1024 / 1024} MiB`;
}
