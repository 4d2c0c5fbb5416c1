/**
 * Credentials that the worker adds to requests of tools, which never have them.
 */
import { isDeepStrictEqual } from "node:util";
import { type HostPattern, matchesName } from "./host-pattern.ts";

/** What the worker does with the value. */
export type CredentialUse =
  /** Sets a header; `{value}` in the template stands for the value. */
  | { readonly kind: "header"; readonly header: string; readonly template: string }
  /** Sets `Authorization` for HTTP Basic (RFC 7617), with the value as the password. */
  | { readonly kind: "basic"; readonly user: string }
  /** Sets a parameter of the query. */
  | { readonly kind: "query"; readonly parameter: string }
  /** Replaces the meaningless text of a variable inside, wherever headers have it. */
  | { readonly kind: "placeholder"; readonly variable: string };

/** Where the worker finds a value. */
export interface CredentialSource {
  readonly kind: "file" | "env";
  /** Absolute path of the file, or name of the variable. */
  readonly name: string;
}

/** What {@link toSource} takes. */
export const sourcePattern = /^(?:file:\/[^\0]*|env:[A-Za-z_][A-Za-z0-9_]*)$/;

/** A source as documents spell it: `file:/PATH` or `env:NAME`. */
export function toSource(text: string): CredentialSource {
  const [kind = "", ...name] = text.split(":");
  return { kind: kind as CredentialSource["kind"], name: name.join(":") };
}

/** A credential of the manifest. */
export interface Credential {
  readonly name: string;
  readonly source: CredentialSource;
  readonly use: CredentialUse;
  /** Hosts that it may be sent to. */
  readonly hosts: readonly HostPattern[];
}

/**
 * Whether a credential may be sent to all that a rule's host names: a name is covered by each
 * pattern that has it, a pattern only by the same one.
 */
export function covers({ hosts }: Pick<Credential, "hosts">, host: HostPattern): boolean {
  return hosts.some((pattern) =>
    host.kind === "name" ? matchesName(pattern, host.name) : isDeepStrictEqual(pattern, host),
  );
}
