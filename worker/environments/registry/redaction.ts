/**
 * Takes secrets out of what installers print. All patterns take time that grows with the text.
 */

/** Shorter values are words of any text. */
const leastSecretLength = 4;
/** A password may have an `@`: the last one before a slash ends it. */
const userInfo = /([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/"'<>]*@/gi;
/** As in {@link userInfo}, in a value that is known to be one of URLs: quotes are no ends. */
const knownUserInfo = /:\/\/([^\s/]*)@/g;
/** Words of a netrc. */
const inNetrc = /\b(?:password|login|account)\s+(?:"((?:[^"\\]|\\.)*)"|(\S+))/g;
/** Lines of an .npmrc; two of the values are base64. */
const inNpmrc = /(_authToken|_auth|_password|username)[ \t]*=[ \t]*(.*)/g;

/** Removes URLs' credentials, and known secrets wherever they are. */
export class Redaction {
  readonly #secrets: readonly string[];

  /**
   * @param values of variables, whose URLs may have credentials
   * @param secrets whole values, such as a password's variable
   * @param files contents of netrc and .npmrc
   */
  constructor(
    values: Iterable<string>,
    secrets: Iterable<string> = [],
    files: Iterable<string> = [],
  ) {
    const found = new Set<string>(secrets);
    for (const value of values) for (const part of credentialsIn(value)) found.add(part);
    for (const content of files) for (const part of secretsIn(content)) found.add(part);
    this.#secrets = [...found]
      .filter(({ length }) => length >= leastSecretLength)
      .sort((a, b) => b.length - a.length);
  }

  /** The text without secrets. */
  apply(text: string): string {
    let clean = text.replaceAll(userInfo, "$1***@");
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, "***");
    return clean;
  }
}

/** Without user and password of its URLs: an index is the same with another password. */
export function withoutCredentials(value: string): string {
  return value.replaceAll(userInfo, "$1");
}

/** User and password of each URL, as they are spelled and decoded. */
function* credentialsIn(value: string): Generator<string> {
  for (const [, info = ""] of value.matchAll(knownUserInfo)) {
    const colon = info.indexOf(":");
    // A user without a password is a token.
    const part = colon < 0 ? info : info.slice(colon + 1);
    yield* [part, decoded(part)];
  }
}

/** The secrets of a netrc or an .npmrc, as they are spelled and decoded. */
function* secretsIn(content: string): Generator<string> {
  for (const [, quoted, plain = ""] of content.matchAll(inNetrc))
    yield* quoted === undefined ? [plain] : [quoted, quoted.replaceAll(/\\(.)/g, "$1")];
  for (const [, key, line = ""] of content.matchAll(inNpmrc)) {
    const value = line.trim().replace(/^(["'])(.*)\1$/, "$2");
    yield* [value, decoded(value)];
    if (key !== "_auth" && key !== "_password") continue;
    const clear = Buffer.from(value, "base64").toString();
    yield* key === "_auth" ? [clear, clear.slice(clear.indexOf(":") + 1)] : [clear];
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
