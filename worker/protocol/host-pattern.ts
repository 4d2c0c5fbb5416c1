/**
 * Hosts as operators write them: names, domains, addresses and ranges.
 */
import { BlockList, isIP, isIPv4 } from "node:net";
import { domainToASCII, domainToUnicode } from "node:url";
import type { z } from "zod";

/**
 * What a rule's host names. `domain` is the name itself and everything below it; `any` is every
 * name and every address.
 */
export type HostPattern =
  | { readonly kind: "any" }
  | { readonly kind: "name" | "subdomains" | "domain"; readonly name: string }
  | { readonly kind: "range"; readonly address: string; readonly prefix: number };

/** Addresses of IPv4, as `192.0.2.0/24`. */
export type AddressRange = Extract<HostPattern, { kind: "range" }>;

/** How a rule is written. */
export const ruleText = "a host with ports, such as api.example.com:443";

/** The pattern of a host that {@link refuseHost} accepts. */
export function toPattern(host: string): HostPattern {
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

/** A check of a schema; the problem says what was expected. */
export function refuseHost(host: string, context: z.core.$RefinementCtx<string>): void {
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
  if (!namePattern.test(name)) return `expected ${ruleText}, found no valid host name`;
  if (plain !== host && !name.includes("."))
    return `${host} would allow a whole top-level domain; name a domain below it`;
  if (hasUndecodableLabel(name)) return `expected ${ruleText}, found no encoding of IDNA`;
  if (endsAsAddress(name)) return "expected an address of four decimal numbers, such as 192.0.2.10";
  return undefined;
}

/** Whether a label is no encoding of IDNA, though it begins as one: RFC 5890, section 2.3.1. */
function hasUndecodableLabel(name: string): boolean {
  return /(?:^|\.)xn--/.test(domainToUnicode(name));
}

/** In the form of {@link canonicalName}. */
const namePattern = /^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_-]+$/;

/** Characters of a name, and of one of its labels: RFC 1035, section 2.3.4. */
const maxNameLength = 253;
const maxLabelLength = 63;

/**
 * Whether a name that a tool asks for can be one of a host. In others, resolvers and programs read
 * different names: one that ends at a zero byte leads past every list.
 */
export function isHostName(name: string): boolean {
  if (name.length > maxNameLength || !namePattern.test(name) || endsAsAddress(name)) return false;
  return name.split(".").every((label) => label.length <= maxLabelLength);
}

/** Whether programs read it as an address of IPv4, in some spelling. */
function endsAsAddress(name: string): boolean {
  return /(?:^|\.)(?:0x[0-9a-f]*|\d+)$/.test(name);
}

/** Whether a name is one of the pattern's, and one that a host can have. */
export function matchesName(host: HostPattern, name: string): boolean {
  if (!isHostName(name)) return false;
  switch (host.kind) {
    case "any":
      return true;
    case "name":
      return name === host.name;
    case "subdomains":
      return name.endsWith(`.${host.name}`);
    case "domain":
      return name === host.name || name.endsWith(`.${host.name}`);
    case "range":
      return false;
  }
}

/** Whether an address of IPv4 is one of the range. */
export function isInRange({ address, prefix }: AddressRange, candidate: string): boolean {
  const range = new BlockList();
  range.addSubnet(address, prefix, "ipv4");
  return range.check(candidate, "ipv4");
}
