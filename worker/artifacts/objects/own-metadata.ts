/**
 * Metadata of objects that only this project writes.
 */

/** A value. Swift makes dashes of the underscores of objects that were uploaded in parts. */
export function ownMetadata(
  metadata: Readonly<Record<string, unknown>> | undefined,
  key: string,
): unknown {
  return metadata?.[key] ?? metadata?.[key.replaceAll("_", "-")];
}
