/**
 * The fields of a rule that look into HTTP: methods, paths, and the credential that requests get.
 */
import { isIPv4 } from "node:net";
import { z } from "zod";
import { accepts, expectation } from "../support/text/expectation.ts";
import { type Credential, covers } from "./credential.ts";
import { toPattern } from "./host-pattern.ts";

/** Requests that a rule allows; undefined members allow every method or path. */
export interface RequestRule {
  readonly methods?: readonly string[] | undefined;
  /** Whole paths, or all below one: `/v1/*`. */
  readonly paths?: readonly string[] | undefined;
  readonly credential?: Credential | undefined;
}

/** Methods of RFC 9110 and 5789 but for CONNECT and TRACE, which are no requests to a resource. */
export const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** Paths of one rule. */
const maxPaths = 64;

/** The port of HTTP without TLS. */
const clearPort = 80;

const methodText = accepts(`a list of ${methods.join(", ")}`);
const pathText = accepts("a path such as /v1/users, or /v1/* for all below /v1/");
const pathsText = accepts(`a list of at most ${maxPaths} paths`);

/** Characters of one path. */
const maxPathLength = 1024;

/** As it is after percent-decoding; a star only as the whole last level. */
const plainPath =
  /^\/(?:(?!\.{1,2}(?:\/|$))[^\s/?#%*\\\p{C}]*\/)*(?:\*|(?!\.{1,2}$)[^\s/?#%*\\\p{C}]*)$/u;

/** Fields of a rule. */
export const requestFields = {
  methods: z
    // As text: a union of rules would hide the place of an enum's issue.
    .array(z.string(methodText).refine(isMethod, methodText).meta({ enum: methods }), methodText)
    .min(1, methodText)
    .optional()
    .describe("Methods of HTTP requests; all by default."),
  paths: z
    .array(z.string(pathText).refine(isPath, pathText), pathsText)
    .min(1, pathsText)
    .max(maxPaths, pathsText)
    .optional()
    .describe("Paths of HTTP requests, such as /v1/users or /v1/*; all by default."),
  credential: z
    .string(accepts("the name of a credential"))
    .optional()
    .describe("Credential of the manifest that the worker adds to requests."),
};

/** Whether a request can have this method at all. */
export function isMethod(method: string): boolean {
  return (methods as readonly string[]).includes(method);
}

function isPath(path: string): boolean {
  return path.length <= maxPathLength && plainPath.test(path);
}

/** A rule as the schema sees it. */
interface RuleFields {
  readonly host: string;
  readonly ports?: readonly number[] | undefined;
  readonly sni?: string | undefined;
  readonly methods?: unknown;
  readonly paths?: unknown;
  readonly credential?: unknown;
}

/** A check of a rule: what cannot be kept together. */
export function refuseRequestFields(
  rule: RuleFields,
  context: z.core.$RefinementCtx<RuleFields>,
): void {
  const field = (["methods", "paths", "credential"] as const).find(
    (name) => rule[name] !== undefined,
  );
  if (field === undefined) return;
  const refuse = (path: string, message: string): void =>
    void context.addIssue({ code: "custom", path: [path], message });
  if (isIPv4(rule.host.split("/")[0] ?? ""))
    refuse(field, "allowed only for a host with a name: an address has no certificate");
  if (rule.sni === "any") refuse("sni", `allowed only without ${field}: TLS ends at the worker`);
  if (rule.credential !== undefined && rule.ports?.includes(clearPort) === true)
    refuse("ports", `a credential is sent by TLS only, and port ${clearPort} has none`);
}

/** A list that can have rules with credentials. */
interface ListFields {
  readonly allow?: readonly (string | RuleFields)[] | undefined;
}

/** Problems of the credentials that a list names, each with its place in the field. */
export function credentialProblems(
  field: string | ListFields,
  credentials: ReadonlyMap<string, Credential>,
): readonly { readonly path: readonly (string | number)[]; readonly message: string }[] {
  if (typeof field === "string") return [];
  return (field.allow ?? []).flatMap((rule, index) => {
    if (typeof rule === "string" || typeof rule.credential !== "string") return [];
    const path = ["allow", index, "credential"];
    const credential = credentials.get(rule.credential);
    const names = [...credentials.keys()].join(", ");
    const known = names === "" ? "of which this file has none" : `one of ${names}`;
    if (credential === undefined)
      return [{ path, message: expectation(`a credential, ${known}`, rule.credential) }];
    if (covers(credential, toPattern(rule.host))) return [];
    const message = `the credential may not be sent to all of ${rule.host}: its "hosts" do not say so`;
    return [{ path, message }];
  });
}
