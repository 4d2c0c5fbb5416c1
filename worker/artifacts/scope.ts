/**
 * Scope and filename to key: the one place where names are checked, so that no store has to.
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

/** What separates artifacts at the first level (`ARTIFACT_SCOPE`). */
export type ScopeConfig =
  /**
   * Everybody in the namespace shares. `namespace` is spelled exactly as the agents spell it,
   * slashes included.
   */
  | { readonly kind: "namespace"; readonly namespace: string }
  /** Every agent has artifacts of its own. */
  | { readonly kind: "app" }
  /** A value that the operator chose. */
  | { readonly kind: "custom"; readonly value: string };

/**
 * Where the versions of one artifact are, in names that are safe as path components and as parts of
 * object keys.
 */
export interface ArtifactKey {
  /**
   * The scope as it was spelled: may hold slashes, never a part `.` or `..`. Stores map it to
   * levels of their own.
   */
  readonly root: string;
  readonly userId: string;
  /**
   * The session, or `userLevel` for an artifact that the user has in every session. No session has
   * that id.
   */
  readonly sessionOrUser: string;
  /** The normalised filename without its `user:`. */
  readonly name: string;
}

/** Takes the place of the session in keys of artifacts that a user has in every session. */
export const userLevel = "user";

/** Where the filesystem store keeps marks: beside the scopes, and never one itself. */
export const marksLevel = ".str-claims";

/** What a filename starts with to address the user's artifacts across sessions. */
export const userPrefix = "user:";

/**
 * Longest path component in bytes of UTF-8 (`NAME_MAX`, limits.h). Filenames are directories in a
 * filesystem store.
 */
export const maxNameBytes = 255;

/**
 * Longest filename, in UTF-16 units, that is normalised at all: NFKC shortens at most fourfold and
 * costs time.
 */
const maxFilenameUnits = 4 * maxNameBytes + userPrefix.length;

/** Longest part of a refused name that an error message repeats. */
const maxQuotedUnits = 64;

/**
 * The scope of a call.
 *
 * Throws StoreError `invalid-name` when the agent's name is the scope and not usable as one; user,
 * session and configured values are checked by `artifactKey`.
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

/**
 * The checked key of an artifact. Two different artifacts never have one key.
 *
 * Throws StoreError `invalid-name`; the message says which of filename, user, session and scope is
 * refused, and why.
 */
export function artifactKey(scope: ArtifactScope, filename: string): ArtifactKey {
  checkRoot(scope.root);
  checkName("user", scope.userId);
  checkName("session", scope.sessionId);
  if (scope.sessionId === userLevel) {
    throw refused("session", userLevel, "that is where artifacts of the user are kept");
  }
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

type Named = "filename" | "user" | "session" | "scope";

const tooLong = `it is longer than ${maxNameBytes} bytes`;

/**
 * Empty parts are as the original has them: slashes at the ends and doubled ones are part of the
 * spelling.
 */
function checkRoot(root: string): void {
  const parts = root.split("/").filter((part) => part !== "");
  if (parts.length === 0) throw refused("scope", root, "it is empty");
  for (const part of parts) checkName("scope", part);
}

function checkName(named: Named, value: string): void {
  const why = objection(value) ?? (value === marksLevel ? "it is taken" : undefined);
  if (why !== undefined) throw refused(named, value, why);
}

/** Why a value cannot be one component of a path, or undefined when it can. */
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
