/**
 * Values of credentials, read when a request needs them, and put into it.
 */
import { createHmac, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import type { Credential, CredentialSource } from "../../protocol/credential.ts";
import type { NetworkPolicy } from "../../protocol/network-rules.ts";
import type { Header } from "../http-forward.ts";

/** Bytes of a value. */
export const maxValueBytes = 16 * 1024;

/** Characters of a value from which on it is hidden: a short one may be part of anything. */
const minHiddenLength = 8;

/** Target and headers of a request that is sent on. */
export interface OutgoingHead {
  readonly target: string;
  readonly headers: readonly Header[];
}

/** A request with a credential in it. */
export interface RequestWithCredential extends OutgoingHead {
  /** A text of the answer without the value, as a host may repeat it. */
  readonly hide: (text: string) => string;
}

/** A value that cannot be used; the message names neither place nor value. */
export class CredentialError extends Error {
  constructor(name: string, reason: string, options?: ErrorOptions) {
    super(`the credential "${name}" cannot be used: its value ${reason}`, options);
    this.name = "CredentialError";
  }
}

/** Values of the worker's environment and files. */
export class CredentialValues {
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #ownFiles: readonly string[];
  readonly #key = randomBytes(32);

  /** @param ownFiles files with the worker's own secrets, which are never sent by any name */
  constructor(
    environment: Readonly<Record<string, string | undefined>>,
    ownFiles: readonly string[] = [],
  ) {
    this.#environment = environment;
    this.#ownFiles = ownFiles;
  }

  /** The meaningless text that stands for a value inside; the same as long as the worker runs. */
  placeholderOf({ name }: Pick<Credential, "name">): string {
    return `placeholder-${createHmac("sha256", this.#key).update(name).digest("hex").slice(0, 32)}`;
  }

  /** A request with the credential in it. Files are read anew. Throws CredentialError. */
  async add(credential: Credential, head: OutgoingHead): Promise<RequestWithCredential> {
    const value = await this.#read(credential);
    const placeholder = this.placeholderOf(credential);
    const secrets = formsOf(credential, value).filter(({ length }) => length >= minHiddenLength);
    const hide = (text: string): string =>
      secrets.reduce((rest, secret) => rest.replaceAll(secret, () => placeholder), text);
    return { ...this.#withValue(credential, value, head), hide };
  }

  #withValue(credential: Credential, value: string, head: OutgoingHead): OutgoingHead {
    const { use } = credential;
    switch (use.kind) {
      case "header":
        return withHeader(
          head,
          use.header,
          use.template.replace("{value}", () => value),
        );
      case "basic": {
        return withHeader(head, "Authorization", `Basic ${basicPair(use.user, value)}`);
      }
      case "query":
        return { ...head, target: withParameter(head.target, use.parameter, value) };
      case "placeholder": {
        const placeholder = this.placeholderOf(credential);
        const headers = head.headers.map(
          ([name, text]) => [name, text.replaceAll(placeholder, () => value)] as const,
        );
        return { ...head, headers };
      }
    }
  }

  async #read({ name, source, use }: Credential): Promise<string> {
    const text = await this.#textOf(name, source);
    const value = text.replace(/\r?\n$/, "");
    if (value === "") throw new CredentialError(name, "is empty");
    // Line breaks would begin another header.
    if (/\p{Cc}/u.test(value)) throw new CredentialError(name, "has control characters");
    const isEncoded = use.kind === "basic" || use.kind === "query";
    if (!isEncoded && /[^\0-\xff]/.test(value))
      throw new CredentialError(name, "has characters that a header cannot have");
    return value;
  }

  async #textOf(name: string, source: CredentialSource): Promise<string> {
    if (source.kind === "env") return this.#environment[source.name] ?? "";
    try {
      // Without waiting for the writer of a pipe.
      await using file = await open(source.name, constants.O_RDONLY | constants.O_NONBLOCK);
      if (await this.#isOwn(file)) throw new CredentialError(name, "is the worker's own secret");
      const bytes = await readBounded(file);
      if (bytes !== undefined) return Buffer.from(bytes).toString();
    } catch (cause) {
      if (cause instanceof CredentialError) throw cause;
      throw new CredentialError(name, "cannot be read", { cause });
    }
    throw new CredentialError(name, `is not in a regular file of at most ${maxValueBytes} bytes`);
  }

  /** By what it is: a path may lead to it through links. */
  async #isOwn(file: FileHandle): Promise<boolean> {
    const { dev, ino } = await file.stat();
    const own = await Promise.all(this.#ownFiles.map((path) => stat(path).catch(() => undefined)));
    return own.some((status) => status?.dev === dev && status.ino === ino);
  }
}

/** Variables of a sandbox whose text stands for values, with this text. */
export function placeholdersOf(
  { lists }: NetworkPolicy,
  values: Pick<CredentialValues, "placeholderOf">,
): ReadonlyMap<string, string> {
  const credentials = lists.flat().flatMap(({ requests }) => requests?.credential ?? []);
  return new Map(
    credentials.flatMap((credential) => {
      const { use } = credential;
      return use.kind === "placeholder" ? [[use.variable, values.placeholderOf(credential)]] : [];
    }),
  );
}

/** How a value is in a request, and how hosts may repeat it. */
function formsOf({ use }: Credential, value: string): readonly string[] {
  const pair = use.kind === "basic" ? [basicPair(use.user, value)] : [];
  return [...pair, value, encodeURIComponent(value)];
}

function basicPair(user: string, value: string): string {
  return Buffer.from(`${user}:${value}`).toString("base64");
}

/** Undefined for what is no regular file, or too large. */
async function readBounded(file: FileHandle): Promise<Uint8Array | undefined> {
  if (!(await file.stat()).isFile()) return undefined;
  const buffer = new Uint8Array(maxValueBytes + 1);
  const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
  return bytesRead > maxValueBytes ? undefined : buffer.subarray(0, bytesRead);
}

function withHeader({ target, headers }: OutgoingHead, name: string, value: string): OutgoingHead {
  const others = headers.filter(([other]) => other.toLowerCase() !== name.toLowerCase());
  return { target, headers: [...others, [name, value]] };
}

/** Takes the place of parameters of this name. */
function withParameter(target: string, name: string, value: string): string {
  const [path = "", ...query] = target.split("?");
  const given = query.join("?").split("&");
  const others = given.filter((part) => part !== "" && nameOf(part) !== name);
  return `${path}?${[...others, `${name}=${encodeURIComponent(value)}`].join("&")}`;
}

function nameOf(part: string): string {
  const [name = ""] = part.split("=");
  try {
    return decodeURIComponent(name.replaceAll("+", " "));
  } catch {
    return name;
  }
}
