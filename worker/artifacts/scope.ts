/**
 * Maps scope and filename to a key. Names are checked here only, and in no store.
 *
 * Stores are shared with agents that run the original implementation, which reduces every name to
 * its last path component. Its layout is kept where two installations have to meet; what lets two
 * callers meet is refused:
 *
 * | input                                   | original                          | here                                  |
 * |-----------------------------------------|-----------------------------------|---------------------------------------|
 * | scope `ed_test`                         | level `ed_test`                   | the same                              |
 * | scope `ed_test/`                        | the level vanishes on disk        | the same (note 1)                     |
 * | scope `myorg/dev`                       | level `dev` on disk               | the same (note 1)                     |
 * | scope is the agent's name, with a slash | its last part                     | refused: a caller chooses it (note 1) |
 * | scope with a part `.` or `..`, or none  | traversal, or no level            | refused                               |
 * | user `a/b@x.com`                        | user `b@x.com`: cross-user read   | refused                               |
 * | session `user`                          | the place of `user:` artifacts    | refused                               |
 * | filename `dir/sub.txt`                  | `sub.txt`: two names, one place   | refused                               |
 * | filename `..`, `.`, `user:..`           | traversal                         | refused                               |
 * | empty user, session or filename         | the level vanishes                | refused                               |
 * | `.str-claims`                           | as it is                          | refused: workers keep marks there     |
 * | `／`, `‥` and other look-alikes         | `/`, `..` after normalisation     | refused: checked after normalisation  |
 * | `ﬁle.txt` and `file.txt`                | one name: NFKC is applied first   | the same (note 2)                     |
 * | `年.csv`, `a b.txt`, `.env`, `a\b`      | as they are, raw UTF-8            | the same                              |
 * | control characters, lone surrogates     | as they are, or a failure         | refused (note 3)                      |
 * | more than 255 bytes of UTF-8            | a failure of the file system      | refused                               |
 *
 * 1. `a/dev` and `b/dev` share a filesystem store, and so do `a/` and `b/`. Both are spellings that
 *    an operator chose; who wants them apart gives them base directories of their own. Where the
 *    scope level has vanished, users stand beside the scopes of other installations, and a user may
 *    carry the name of a scope. Content still never crosses: versions are regular files, four
 *    levels below the base in one case and five in the other, so what is a version to one is at
 *    most a directory to the other. Agent names hold no slash; one that does is a caller reaching
 *    for a scope that is not its own.
 * 2. The two spellings belong to one user and one session, and agents count on being able to use
 *    either.
 * 3. Lone surrogates all become U+FFFD on the way to UTF-8: two names, one place.
 */
import type { Caller } from "../protocol/invocation.ts";
import { StoreError } from "./store.ts";
import type { ArtifactScope } from "./store.ts";

/** First level of artifacts (`ARTIFACT_SCOPE`). */
export type ScopeConfig =
  /** Shared in the namespace, which is spelled exactly as agents spell it, with slashes. */
  | { readonly kind: "namespace"; readonly namespace: string }
  /** Each agent has its own artifacts. */
  | { readonly kind: "app" }
  /** The operator's value. */
  | { readonly kind: "custom"; readonly value: string };

/** Where the artifacts of a session lie, or those of a user across sessions. */
export interface ArtifactLevel {
  /** The scope as spelled: may hold slashes, never a part `.` or `..`. */
  readonly root: string;
  readonly userId: string;
  /** The session, or `userLevel` for artifacts of all sessions. No session has that id. */
  readonly sessionOrUser: string;
}

/** Key of an artifact; its names are safe as path components and in object keys. */
export interface ArtifactKey extends ArtifactLevel {
  /** The normalised filename without its `user:`. */
  readonly name: string;
}

/** Replaces the session in keys of a user's artifacts. */
export const userLevel = "user";

/** Directory of marks in the filesystem store, beside the scopes; no scope has this name. */
export const marksLevel = ".str-claims";

/** Filename prefix of a user's artifacts across sessions. */
export const userPrefix = "user:";

/** Longest path component in bytes of UTF-8 (`NAME_MAX`, limits.h). */
export const maxNameBytes = 255;

/** Longest filename to normalise, in UTF-16 units: NFKC shortens at most fourfold. */
const maxFilenameUnits = 4 * maxNameBytes + userPrefix.length;

/** Longest part of a refused name in an error message. */
const maxQuotedUnits = 64;

/**
 * The scope of a call. Throws StoreError `invalid-name` when the agent's name is the scope and
 * unusable; `artifactKey` checks the other values.
 */
export function artifactScope(config: ScopeConfig, caller: Caller): ArtifactScope {
  return { root: rootOf(config, caller), userId: caller.userId, sessionId: caller.sessionId };
}

function rootOf(config: ScopeConfig, caller: Caller): string {
  switch (config.kind) {
    case "namespace":
      return config.namespace;
    case "custom":
      return config.value;
    case "app":
      checkName("scope", caller.appName);
      return caller.appName;
  }
}

/** The levels that a scope sees, of its session and of its user. Throws as `artifactKey` does. */
export function artifactLevels(
  scope: ArtifactScope,
): readonly [session: ArtifactLevel, user: ArtifactLevel] {
  checkScope(scope);
  const { root, userId, sessionId } = scope;
  return [
    { root, userId, sessionOrUser: sessionId },
    { root, userId, sessionOrUser: userLevel },
  ];
}

/**
 * The checked key of an artifact, unique in the store. Throws StoreError `invalid-name` with the
 * refused name and the reason.
 */
export function artifactKey(scope: ArtifactScope, filename: string): ArtifactKey {
  checkScope(scope);
  if (filename.length > maxFilenameUnits) throw refused("filename", filename, tooLong);
  const normalised = filename.normalize("NFKC");
  const isOfUser = normalised.startsWith(userPrefix);
  const name = isOfUser ? normalised.slice(userPrefix.length) : normalised;
  checkName("filename", name);
  return {
    root: scope.root,
    userId: scope.userId,
    sessionOrUser: isOfUser ? userLevel : scope.sessionId,
    name,
  };
}

/** The filename of a key, with its `user:`. */
export function filenameOf({ sessionOrUser, name }: ArtifactKey): string {
  return sessionOrUser === userLevel ? userPrefix + name : name;
}

/**
 * The filename of a name that a store lists at a level. Undefined where `artifactKey` leads to no
 * such name: other savers check less.
 */
export function listedFilename(level: ArtifactLevel, name: string): string | undefined {
  if (objection(name) !== undefined || name === marksLevel) return undefined;
  if (name !== name.normalize("NFKC")) return undefined;
  if (level.sessionOrUser !== userLevel && name.startsWith(userPrefix)) return undefined;
  return filenameOf({ ...level, name });
}

type Named = "filename" | "user" | "session" | "scope";

const tooLong = `it is longer than ${maxNameBytes} bytes`;

function checkScope({ root, userId, sessionId }: ArtifactScope): void {
  checkRoot(root);
  checkName("user", userId);
  checkName("session", sessionId);
  if (sessionId === userLevel) {
    throw refused("session", userLevel, "that is where artifacts of the user are kept");
  }
}

/** Allows empty parts, as the original does: outer and doubled slashes belong to the spelling. */
function checkRoot(root: string): void {
  const parts = root.split("/").filter((part) => part !== "");
  if (parts.length === 0) throw refused("scope", root, "it is empty");
  for (const part of parts) checkName("scope", part);
}

function checkName(named: Named, value: string): void {
  const why = objection(value) ?? (value === marksLevel ? "it is taken" : undefined);
  if (why !== undefined) throw refused(named, value, why);
}

/** Why a value is no path component; undefined when it is one. */
function objection(value: string): string | undefined {
  if (value === "") return "it is empty";
  if (value === "." || value === "..") return "it means a directory";
  if (value.includes("/")) return "it holds a slash";
  if (!value.isWellFormed()) return "it is not valid Unicode";
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value)) return "it holds a control character or line separator";
  if (Buffer.byteLength(value) > maxNameBytes) return tooLong;
  return undefined;
}

function refused(named: Named, value: string, why: string): StoreError {
  return new StoreError("invalid-name", `The ${named} ${quote(value)} is refused: ${why}.`);
}

/** The start of a value, in characters that are safe in a log line and on a terminal. */
export function quote(value: string): string {
  const start = value.length > maxQuotedUnits ? `${value.slice(0, maxQuotedUnits)}…` : value;
  return JSON.stringify(start).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
