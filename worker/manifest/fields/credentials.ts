/**
 * The map `credentials` of a manifest. Messages repeat no value: it may be a secret in the wrong
 * place.
 */
import { z } from "zod";
import {
  type Credential,
  type CredentialUse,
  sourcePattern,
  toSource,
} from "../../protocol/credential.ts";
import { refuseHost, toPattern } from "../../protocol/host-pattern.ts";
import { entryNameSchema } from "../../protocol/operator-fields.ts";
import type { DocumentProblems } from "../../support/file-problems.ts";
import { isRecord } from "../../support/json/yaml-document.ts";
import {
  accepts,
  acceptsKeys,
  expectation,
  whenFineSoFar,
} from "../../support/text/expectation.ts";
import { envNameField } from "./env.ts";

/** Credentials of one manifest. */
export const maxCredentials = 100;

/** Hosts of one credential. */
const maxHosts = 64;

/** Headers that give a message's host and end. */
const framingHeaders =
  /^(?:host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|proxy-.*)$/i;

const silent = (message: string) => ({ error: () => message });
const valueText = silent(
  'expected "file:" with an absolute path, or "env:" with the name of a variable; never the value itself',
);
const headerText = silent(
  'expected a header with {value} in it once, such as "Authorization: Bearer {value}"',
);
const framingText = silent("this header belongs to the connection, and cannot be set");
const userText = silent("expected the name of a user, without colon");
const queryText = silent("expected the name of a parameter (letters, digits, . _ ~ and -)");
const hostsText = accepts(`a list of at most ${maxHosts} hosts`);
const headerPattern = /^([A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}): *([\x20-\x7e]*\{value\}[\x20-\x7e]*)$/;

const uses = ["header", "basic", "query", "placeholder"] as const;

const fields = {
  value: z
    .string(valueText)
    .max(4096, valueText)
    .regex(sourcePattern, valueText)
    .describe("Where the worker reads the value: `file:/PATH` or `env:NAME`."),
  hosts: z
    .array(z.string(hostsText).superRefine(refuseHost).superRefine(refuseRange), hostsText)
    .min(1, hostsText)
    .max(maxHosts, hostsText)
    .describe("Hosts that it may be sent to."),
  header: z
    .string(headerText)
    .max(1024, headerText)
    .regex(headerPattern, headerText)
    .refine((text) => text.split("{value}").length === 2, { ...headerText, ...whenFineSoFar })
    .refine((text) => !framingHeaders.test(text.split(":")[0] ?? ""), {
      ...framingText,
      ...whenFineSoFar,
    })
    .optional()
    .describe("Header that is set, with `{value}` for the value."),
  basic: z
    .string(userText)
    .regex(/^[\x20-\x39\x3b-\x7e]{1,256}$/, userText)
    .optional()
    .describe("User of HTTP Basic, whose password is the value."),
  query: z
    .string(queryText)
    .regex(/^[A-Za-z0-9._~-]{1,100}$/, queryText)
    .optional()
    .describe("Parameter of the query that is set to the value."),
  placeholder: envNameField
    .optional()
    .describe("Variable inside whose text is replaced by the value in headers."),
};

/** One credential. */
export const credentialField = z
  .strictObject(fields, acceptsKeys("a map of a credential", Object.keys(fields)))
  .refine((credential) => uses.filter((use) => credential[use] !== undefined).length === 1, {
    ...silent(`expected one of ${uses.join(", ")}`),
    when: ({ value }) => isRecord(value),
  });

function refuseRange(host: string, context: z.core.$RefinementCtx<string>): void {
  if (context.issues.length > 0 || toPattern(host).kind !== "range") return;
  context.addIssue({ code: "custom", message: "expected a name: an address has no certificate" });
}

/** The credentials of a file, by name; those with problems are left out. */
export function readCredentials(
  value: unknown,
  found: DocumentProblems,
): ReadonlyMap<string, Credential> {
  const read = new Map<string, Credential>();
  if (value === undefined || value === null) return read;
  const path = ["credentials"];
  if (!isRecord(value)) found.add(path, expectation("a map of credentials", value));
  const entries = isRecord(value) ? Object.entries(value) : [];
  if (entries.length > maxCredentials)
    found.add(path, `expected at most ${maxCredentials} credentials, found ${entries.length}`);
  const variables = new Set<string>();
  for (const [name, given] of entries.slice(0, maxCredentials)) {
    found.addIssues([...path, name], entryNameSchema.safeParse(name).error);
    const { data, error } = credentialField.safeParse(given);
    found.addIssues([...path, name], error);
    if (data === undefined) continue;
    const { placeholder } = data;
    if (placeholder !== undefined && variables.has(placeholder))
      found.add([...path, name, "placeholder"], "another credential has this variable");
    if (placeholder !== undefined) variables.add(placeholder);
    read.set(name, toCredential(name, data));
  }
  return read;
}

function toCredential(name: string, data: z.output<typeof credentialField>): Credential {
  return {
    name,
    source: toSource(data.value),
    use: toUse(data),
    hosts: data.hosts.map(toPattern),
  };
}

/** The schema guarantees one of them. */
function toUse(data: z.output<typeof credentialField>): CredentialUse {
  const { header, basic, query, placeholder = "" } = data;
  if (header !== undefined) {
    const [, name = "", template = ""] = headerPattern.exec(header) ?? [];
    return { kind: "header", header: name, template };
  }
  if (basic !== undefined) return { kind: "basic", user: basic };
  if (query !== undefined) return { kind: "query", parameter: query };
  return { kind: "placeholder", variable: placeholder };
}
