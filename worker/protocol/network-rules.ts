/**
 * The field `network` of manifest and profiles file: what a sandbox may reach.
 */
import { z } from "zod";
import { accepts, acceptsKeys, whenFineSoFar } from "../support/text/expectation.ts";
import type { Credential } from "./credential.ts";
import { type HostPattern, refuseHost, ruleText, toPattern } from "./host-pattern.ts";
import { type RequestRule, refuseRequestFields, requestFields } from "./request-rules.ts";

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
  /** Which requests of HTTP it allows; undefined where connections are not opened. */
  readonly requests?: RequestRule | undefined;
}

/**
 * Lists that meet, such as a profile's and a tool's. A connection needs a rule of each: an empty
 * list allows nothing.
 */
export interface NetworkPolicy {
  readonly lists: readonly (readonly NetworkRule[])[];
  /** Concurrent connections. */
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

/** Concurrent connections of a list without `max_connections`. */
const defaultMaxConnections = 64;

/** Rules of one list. */
export const maxRules = 256;

/** Ports of one list, each of which takes a listening socket in each sandbox. */
export const maxPorts = 64;

/** The port of name service, which sandboxes ask the worker itself. */
const dnsPort = 53;

/** The port of the proxy inside. */
export const proxyPort = 3128;

/** Ports that no rule can have. */
export const reservedPorts: readonly number[] = [dnsPort, proxyPort];

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
  ...requestFields,
};

const ruleObject = z
  .strictObject(ruleFields, acceptsKeys("a rule", Object.keys(ruleFields)))
  .superRefine(refuseRequestFields);

const ruleSchema = z.union(
  [
    z.string().superRefine((text, context) => {
      const { host, ports } = splitRule(text);
      refuseHost(host, context);
      if (ports.length === 0 || ports.some((port) => !portSchema.safeParse(port).success))
        context.addIssue({ code: "custom", message: accepts(portsText).error({ input: text }) });
    }),
    ruleObject,
  ],
  accepts(`${ruleText}, or a map of a rule`),
);

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
      .refine(
        (list) => new Set(rulesOf(list, new Map()).flatMap(({ ports }) => ports)).size <= maxPorts,
        {
          ...accepts(`at most ${maxPorts} different ports`),
          ...whenFineSoFar,
        },
      ),
  ],
  accepts(expected),
);

/** `public`: every public address on ports 80 and 443. */
export const publicNetwork: NetworkPolicy = {
  lists: [[publicRule()]],
  maxConnections: defaultMaxConnections,
};

/** The field's output. */
export type NetworkField = z.output<typeof networkField>;

/** The network of a field. An empty list is `none`. Its credentials are among the given ones. */
export function toNetwork(field: NetworkField, credentials: Credentials = new Map()): Network {
  if (field === "public") return publicNetwork;
  if (typeof field === "string") return field;
  const rules = rulesOf(field, credentials);
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

/** By name. */
type Credentials = ReadonlyMap<string, Credential>;

function rulesOf(list: ListFields, credentials: Credentials): readonly NetworkRule[] {
  const open = list.public === true ? [publicRule(list.ports)] : [];
  return [...open, ...(list.allow ?? []).map((rule) => toRule(rule, credentials))];
}

function toRule(rule: z.output<typeof ruleSchema>, credentials: Credentials): NetworkRule {
  if (typeof rule === "string") {
    const { host, ports } = splitRule(rule);
    return { text: rule, host: toPattern(host), ports, allowsPrivate: false, allowsAnySni: false };
  }
  const { methods, paths, credential: name } = rule;
  const isOpened = [methods, paths, name].some((field) => field !== undefined);
  const credential = name === undefined ? undefined : credentials.get(name);
  return {
    text: flowText(rule),
    host: toPattern(rule.host),
    ports: rule.ports ?? defaultPorts,
    allowsPrivate: rule.private ?? false,
    allowsAnySni: rule.sni === "any",
    ...(isOpened && { requests: { methods, paths, credential } }),
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
  // No ports follow the colons of URLs, users and IPv6: these are refused as hosts, unsplit.
  const isUnsplit = colon === -1 || /^\[|@|:\/\/|:.*:/.test(text);
  if (isUnsplit) return { host: text, ports: defaultPorts };
  const ports = text.slice(colon + 1).split(",");
  return {
    host: text.slice(0, colon),
    ports: ports.map((port) => (/^\d{1,5}$/.test(port.trim()) ? Number(port) : 0)),
  };
}
