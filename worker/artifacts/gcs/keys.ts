/**
 * Names of objects, as agents write and read them: `{scope}/{user}/{session}/{name}/{version}`, and
 * `{scope}/{user}/user/user:{name}/{version}`. The scope is spelled as it is, with all its slashes.
 */
import { checkedPrefix } from "../objects/keys.ts";
import { type ArtifactKey, type ArtifactLevel, userLevel, userPrefix } from "../scope.ts";

/** All versions of an artifact start with it. Throws StoreError `invalid-name` when it is long. */
export function prefixOf(key: ArtifactKey): string {
  return checkedPrefix(`${levelPrefixOf(key)}${key.name}/`);
}

/** All artifacts of a session, or of a user, start with it. */
export function levelPrefixOf({ root, userId, sessionOrUser }: ArtifactLevel): string {
  const start = sessionOrUser === userLevel ? userPrefix : "";
  return `${root}/${userId}/${sessionOrUser}/${start}`;
}
