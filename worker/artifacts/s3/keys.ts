/**
 * Keys of objects, as agents write and read them:
 * `{scope}/{user}/{session or "user"}/{name}/{version}`.
 */
import { checkedPrefix } from "../objects/keys.ts";
import type { ArtifactKey, ArtifactLevel } from "../scope.ts";

/** All versions of an artifact start with it. Throws StoreError `invalid-name` when it is long. */
export function prefixOf(key: ArtifactKey): string {
  return checkedPrefix(`${levelPrefixOf(key)}${key.name}/`);
}

/** All artifacts of a session, or of a user, start with it. */
export function levelPrefixOf({ root, userId, sessionOrUser }: ArtifactLevel): string {
  // Agents write below the scope without its outer slashes.
  const scope = root.replace(/^\/+|\/+$/g, "");
  return `${scope}/${userId}/${sessionOrUser}/`;
}
