/**
 * Names of objects, as agents write and read them: `{scope}/{user}/{session}/{name}/{version}`, and
 * `{scope}/{user}/user/user:{name}/{version}`. The scope is spelled as it is, with all its slashes.
 */
import type { ObjectLayout } from "../objects/bucket.ts";
import { checkedPrefix } from "../objects/keys.ts";
import {
  type ArtifactKey,
  type ArtifactLevel,
  maxNameBytes,
  userLevel,
  userPrefix,
} from "../scope.ts";

/** The layout that agents share. They read no metadata. */
export const layout: ObjectLayout = { levelPrefixOf, prefixesOf, metadataOf: () => ({}) };

/**
 * Agents do not normalise names here, unlike in other stores, so that the name as given is the
 * second one where it differs.
 */
function prefixesOf(key: ArtifactKey, filename: string): readonly [string, ...string[]] {
  const isOfUser = filename.startsWith(userPrefix);
  const name = isOfUser ? filename.slice(userPrefix.length) : filename;
  // In another width, `user:` is part of the name for agents.
  const isSameLevel = isOfUser === (key.sessionOrUser === userLevel);
  const isOther = isSameLevel && name !== key.name && Buffer.byteLength(name) <= maxNameBytes;
  return [prefixOf(key), ...(isOther ? [prefixOf({ ...key, name })] : [])];
}

function prefixOf(key: ArtifactKey): string {
  return checkedPrefix(`${levelPrefixOf(key)}${key.name}/`);
}

function levelPrefixOf({ root, userId, sessionOrUser }: ArtifactLevel): string {
  const start = sessionOrUser === userLevel ? userPrefix : "";
  return `${root}/${userId}/${sessionOrUser}/${start}`;
}
