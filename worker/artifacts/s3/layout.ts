/**
 * Keys and metadata of objects, as agents write and read them:
 * `{scope}/{user}/{session or "user"}/{name}/{version}`.
 */
import type { ObjectLayout } from "../objects/bucket.ts";
import { checkedPrefix } from "../objects/keys.ts";
import { type ArtifactLevel, filenameOf } from "../scope.ts";

/** Characters of a name: all metadata of an object has 2 kB, and a value 256 bytes in Swift. */
const maxNameChars = 256;

/** The layout that agents share. */
export const layout: ObjectLayout = {
  levelPrefixOf,
  prefixesOf: (key) => [checkedPrefix(`${levelPrefixOf(key)}${key.name}/`)],
  metadataOf: (key, sessionId, version) => ({
    original_filename: escaped(filenameOf(key)),
    user_id: escaped(key.userId),
    session_id: escaped(sessionId),
    version: String(version),
  }),
};

function levelPrefixOf({ root, userId, sessionOrUser }: ArtifactLevel): string {
  // Agents write below the scope without its outer slashes.
  const scope = root.replace(/^\/+|\/+$/g, "");
  return `${scope}/${userId}/${sessionOrUser}/`;
}

/** ASCII by Python's `backslashreplace`, as agents write it; long names are cut off. */
function escaped(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]/gu, (character) => {
    const hex = (character.codePointAt(0) ?? 0).toString(16);
    if (hex.length <= 2) return `\\x${hex.padStart(2, "0")}`;
    return hex.length <= 4 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
  });
  return ascii.slice(0, maxNameChars);
}
