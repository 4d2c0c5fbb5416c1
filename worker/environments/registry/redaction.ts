/**
 * Takes secrets out of what installers print.
 */

/** Shorter values are words of any text. */
const leastSecretLength = 4;
const userInfo = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"'<>]+@/gi;
/** Values of a netrc or an .npmrc. */
const inFiles =
  /(?:\b(?:password|login|account)\s+|(?:_authToken|_auth|_password|username)\s*=\s*"?)([^\s"]+)/g;

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
    for (const content of files)
      for (const [, secret = ""] of content.matchAll(inFiles)) found.add(secret);
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
  for (const [match] of value.matchAll(userInfo)) {
    const [, info = ""] = /:\/\/(.*)@$/.exec(match) ?? [];
    const colon = info.indexOf(":");
    // A user without a password is a token.
    const parts = colon < 0 ? [info] : [info.slice(colon + 1)];
    for (const part of parts) yield* [part, decoded(part)];
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
