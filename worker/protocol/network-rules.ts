/**
 * The field `network` of manifest and profiles file: what a sandbox may reach.
 */
import { isIP, isIPv4 } from "node:net";
import { domainToASCII } from "node:url";
import { z } from "zod";
import { accepts, acceptsKeys, whenFineSoFar } from "../support/text/expectation.ts";

/**
 * What a rule's host names. `domain` is the name itself and everything below it; `any` is every
 * name and every address.
 */
export type HostPattern =
  | { readonly kind: "any" }
  | { readonly kind: "name" | "subdomains" | "domain"; readonly name: string }
  | { readonly kind: "range"; readonly address: string; readonly prefix: number };

/** One entry of a list. */
export interface NetworkRule {
  /** The entry as its file has it, in one line. */
  readonly text: string;
  readonly host: HostPattern;
  readonly ports: readonly number[];
  /** Whether the host may have an address that is not public. */
  readonly allowsPrivate: boolean;
  /** Whether TLS may name another host than the one that was connected to. */
  readonly allowsAnySni: boolean;
}

/**
 * Lists that meet, such as a profile's and a tool's. A connection needs a rule of each: an empty
 * list allows nothing.
 */
export interface NetworkPolicy {
  readonly lists: readonly (readonly NetworkRule[])[];
  /** Connections at once. */
  readonly maxConnections: number;
}

/**
 * `none`: an empty network namespace. `host`: the host's network, certificates and name service. A
 * policy: what its lists allow.
 */
export type Network = "none" | "host" | NetworkPolicy;

/** Ports of public addresses where none are given. */
const publicPorts = [80, 443];

/** Ports of a rule that names none. */
const defaultPorts = [443];

/** Connections at once where the list does not say. */
const defaultMaxConnections = 64;

/** Rules of one list. */
export const maxRules = 256;

/** Ports of one list, each of which takes a listening socket in each sandbox. */
export const maxPorts = 64;

/** The port of name service, which sandboxes ask the worker itself. */
const dnsPort = 53;

/** Ports that no rule can have. */
export const reservedPorts: readonly number[] = [dnsPort];

const ruleText = "a host with ports, such as api.example.com:443";
const portsText = `a list of ports, 1 to 65535 without ${reservedPorts.join(", ")}`;

const portSchema = z
  .int(accepts(portsText))
  .min(1, accepts(portsText))
  .max(65_535, accepts(portsText))
  .refine((port) => !reservedPorts.includes(port), accepts(portsText));

const ruleFields = {
  host: z.string(accepts(ruleText)).superRefine(refuseHost).describe("Name, or address range."),
  ports: z
    .array(portSchema, accepts(portsText))
    .min(1, accepts(portsText))
    .optional()
    .describe("Ports; 443 by default."),
  private: z.boolean(accepts("true or false")).optional().describe("May have a private address."),
  sni: z
    .enum(["exact", "any"], accepts("one of exact, any"))
    .optional()
    .describe("Names that TLS may ask for: only the one that was connected to, or any."),
};

const ruleObject = z.strictObject(ruleFields, acceptsKeys("a rule", Object.keys(ruleFields)));

const ruleSchema = z.union([
  z.string().superRefine((text, context) => {
    const { host, ports } = splitRule(text);
    refuseHost(host, context);
    if (ports.length === 0 || ports.some((port) => !portSchema.safeParse(port).success))
      context.addIssue({ code: "custom", message: accepts(portsText).error({ input: text }) });
  }),
  ruleObject,
]);

const listFields = {
  allow: z
    .array(ruleSchema, accepts("a list of hosts"))
    .max(maxRules, accepts(`at most ${maxRules} hosts`))
    .optional()
    .describe("Hosts that the tool reaches, and nothing else."),
  public: z
    .literal(true, accepts("true"))
    .optional()
    .describe("Every public address on `ports`, beside the hosts of `allow`."),
  ports: z
    .array(portSchema, accepts(portsText))
    .min(1, accepts(portsText))
    .optional()
    .describe("Ports of public addresses; 80 and 443 by default."),
  max_connections: z
    .int(accepts("a whole number, 1 to 1000"))
    .min(1, accepts("a whole number, 1 to 1000"))
    .max(1000, accepts("a whole number, 1 to 1000"))
    .optional()
    .describe("Connections at once; 64 by default."),
};

const words = ["none", "public", "host"] as const;
const expected = `one of ${words.join(", ")}, or a map with "allow" or "public"`;

/** The field `network`. */
export const networkField = z.union(
  [
    z.enum(words),
    z
      .strictObject(listFields, acceptsKeys("a map of a network", Object.keys(listFields)))
      .refine((list) => list.allow !== undefined || list.public === true, {
        ...accepts(`a map with "allow" or "public"`),
        ...whenFineSoFar,
      })
      .refine((list) => list.ports === undefined || list.public === true, {
        ...{ path: ["ports"], error: 'belongs to "public: true"; a host has ports of its own' },
        ...whenFineSoFar,
      })
      .refine((list) => new Set(rulesOf(list).flatMap(({ ports }) => ports)).size <= maxPorts, {
        ...accepts(`at most ${maxPorts} different ports`),
        ...whenFineSoFar,
      }),
  ],
  accepts(expected),
);

/** `public`: every public address on ports 80 and 443. */
export const publicNetwork: NetworkPolicy = {
  lists: [[publicRule()]],
  maxConnections: defaultMaxConnections,
};

/** What the field says. An empty list is `none`. */
export function toNetwork(field: z.output<typeof networkField>): Network {
  if (field === "public") return publicNetwork;
  if (typeof field === "string") return field;
  const rules = rulesOf(field);
  if (rules.length === 0) return "none";
  return { lists: [rules], maxConnections: field.max_connections ?? defaultMaxConnections };
}

function publicRule(given?: readonly number[]): NetworkRule {
  const text = given === undefined ? "public" : flowText({ public: true, ports: given });
  const ports = given ?? publicPorts;
  return { text, host: { kind: "any" }, ports, allowsPrivate: false, allowsAnySni: false };
}

interface ListFields {
  readonly allow?: readonly z.output<typeof ruleSchema>[] | undefined;
  readonly public?: true | undefined;
  readonly ports?: readonly number[] | undefined;
}

function rulesOf(list: ListFields): readonly NetworkRule[] {
  const open = list.public === true ? [publicRule(list.ports)] : [];
  return [...open, ...(list.allow ?? []).map(toRule)];
}

function toRule(rule: z.output<typeof ruleSchema>): NetworkRule {
  if (typeof rule === "string") {
    const { host, ports } = splitRule(rule);
    return { text: rule, host: toPattern(host), ports, allowsPrivate: false, allowsAnySni: false };
  }
  return {
    text: flowText(rule),
    host: toPattern(rule.host),
    ports: rule.ports ?? defaultPorts,
    allowsPrivate: rule.private ?? false,
    allowsAnySni: rule.sni === "any",
  };
}

/** A map as YAML has it in one line. */
function flowText(rule: object): string {
  const members = Object.entries(rule).map(([key, value]: [string, unknown]) => {
    return `${key}: ${Array.isArray(value) ? `[${value.join(", ")}]` : String(value)}`;
  });
  return `{ ${members.join(", ")} }`;
}

function splitRule(text: string): { readonly host: string; readonly ports: readonly number[] } {
  const colon = text.indexOf(":");
  if (colon === -1) return { host: text, ports: defaultPorts };
  const ports = text.slice(colon + 1).split(",");
  return {
    host: text.slice(0, colon),
    ports: ports.map((port) => (/^\d{1,5}$/.test(port.trim()) ? Number(port) : 0)),
  };
}

/** The pattern of a host that {@link refuseHost} accepts. */
function toPattern(host: string): HostPattern {
  const [address = "", prefix] = host.split("/");
  if (isIPv4(address)) return { kind: "range", address, prefix: Number(prefix ?? 32) };
  if (host.startsWith("*.")) return { kind: "subdomains", name: canonicalName(host.slice(2)) };
  if (host.startsWith(".")) return { kind: "domain", name: canonicalName(host.slice(1)) };
  return { kind: "name", name: canonicalName(host) };
}

/**
 * The form of a name in which two are compared: ASCII, lower case, without the dot at its end.
 * Empty for one that IDNA refuses.
 */
export function canonicalName(name: string): string {
  return domainToASCII(name.toLowerCase()).replace(/\.$/, "");
}

function refuseHost(host: string, context: z.core.$RefinementCtx<string>): void {
  const problem = problemOfHost(host);
  if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
}

function problemOfHost(host: string): string | undefined {
  if (host.includes("://")) return `expected ${ruleText}, found a URL`;
  if (host.includes("@")) return `expected ${ruleText}, found a user name in front of the host`;
  const [address = "", prefix, ...rest] = host.split("/");
  if (isIPv4(address)) {
    const isRange = prefix === undefined || /^(?:[0-9]|[12][0-9]|3[0-2])$/.test(prefix);
    return isRange && rest.length === 0 ? undefined : "expected a range such as 192.0.2.0/24";
  }
  if (isIP(address) !== 0 || host.startsWith("["))
    return "there is no IPv6 inside; name the host by its name";
  if (prefix !== undefined) return `expected ${ruleText}, found a path`;
  if (host === "*") return "a bare * would allow everything; name domains, such as *.example.com";
  const plain = host.replace(/^(?:\*\.|\.)/, "");
  if (plain.includes("*")) return "a * can stand only as the whole first label";
  const name = canonicalName(plain);
  if (!namePattern.test(name)) return `expected ${ruleText}, found a name that is none`;
  if (plain !== host && !name.includes("."))
    return `${host} would allow a whole top-level domain; name a domain below it`;
  if (endsAsAddress(name)) return "expected an address of four decimal numbers, such as 192.0.2.10";
  return undefined;
}

/** In the form of {@link canonicalName}. */
const namePattern = /^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_-]+$/;

/** Characters of a name, and of one of its labels: RFC 1035, section 2.3.4. */
const maxNameLength = 253;
const maxLabelLength = 63;

/** Whether a name that a tool asks for can be one of a host. */
export function isHostName(name: string): boolean {
  if (name.length > maxNameLength || !namePattern.test(name) || endsAsAddress(name)) return false;
  return name.split(".").every((label) => label.length <= maxLabelLength);
}

/** Whether programs read it as an address of IPv4, in some spelling. */
function endsAsAddress(name: string): boolean {
  return /(?:^|\.)(?:0x[0-9a-f]*|\d+)$/.test(name);
}
