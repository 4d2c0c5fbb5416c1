/**
 * Where values of credentials may come from: the manifest asks, the operator allows.
 */
import { dirname, normalize } from "node:path/posix";
import type { Credential, CredentialSource } from "../../protocol/credential.ts";
import type { Network } from "../../protocol/network-rules.ts";
import type { Refusal } from "../../protocol/refusal.ts";

/** The variable with the list. */
const variable = "CREDENTIAL_SOURCES";

/** The operator's settings. */
export interface CredentialSourceOptions {
  /**
   * Variables; files, or directories whose files are allowed. Undefined where tools run without
   * their credentials.
   */
  readonly allowed: readonly CredentialSource[] | undefined;
  /** Files with the worker's own secrets, which are never allowed. */
  readonly ownFiles: readonly string[];
}

/** Refuses tools whose credentials have other sources. */
export class CredentialSources {
  readonly #allowed: ReadonlySet<string> | undefined;
  readonly #ownFiles: ReadonlySet<string>;

  constructor({ allowed, ownFiles }: CredentialSourceOptions) {
    // Paths begin with a slash, variables do not.
    this.#allowed = allowed && new Set(allowed.map(({ name }) => name));
    this.#ownFiles = new Set(ownFiles.map(normalize));
  }

  /** The refusal of a tool; undefined when all of its credentials are allowed. */
  refuse({ network }: { readonly network?: Network | undefined }): Refusal | undefined {
    const refused = credentialsOf(network).find(({ source }) => !this.#allows(source));
    if (refused === undefined) return undefined;
    const { name, source } = refused;
    const publicReason = `the value of its credential "${name}" is not allowed by ${variable}`;
    return { reason: `${publicReason}: ${this.#remedyOf(source)}`, publicReason };
  }

  /** Only files directly in a directory, so that no `..` after a link leads out of it. */
  #allows({ name }: CredentialSource): boolean {
    if (this.#allowed === undefined) return true;
    return !this.#isOwn(name) && (this.#allowed.has(name) || this.#allowed.has(dirname(name)));
  }

  #isOwn(path: string): boolean {
    return this.#ownFiles.has(normalize(path));
  }

  #remedyOf({ kind, name }: CredentialSource): string {
    return this.#isOwn(name)
      ? `${name} is a file of the worker's own`
      : `add ${kind}:${name} to it`;
  }
}

function credentialsOf(network: Network = "none"): readonly Credential[] {
  if (typeof network === "string") return [];
  return network.lists.flat().flatMap(({ requests }) => requests?.credential ?? []);
}
