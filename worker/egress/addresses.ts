/**
 * Classes of addresses: IANA's special-purpose registries (RFC 6890) and the host's own.
 */
import { BlockList, isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";

/**
 * Ranges of IPv4 that are not public, with the documentation's and benchmarks'; and the address by
 * which every machine of Azure reaches its own metadata.
 */
const specialIPv4: readonly (readonly [address: string, prefix: number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

/** All of IPv6 that is public, without the parts that lead to IPv4 or are for examples. */
const publicIPv6 = ["2000::", 3] as const;
const specialIPv6: readonly (readonly [address: string, prefix: number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const special = new BlockList();
for (const [address, prefix] of specialIPv4) special.addSubnet(address, prefix, "ipv4");
for (const [address, prefix] of specialIPv6) special.addSubnet(address, prefix, "ipv6");
const global = new BlockList();
global.addSubnet(...publicIPv6, "ipv6");

/** Forms of IPv6 that lead to an address of IPv4, or to any address of this host. */
const translated = new BlockList();
for (const [address, prefix] of [
  ["::", 96],
  ["::ffff:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2001::", 32],
  ["2002::", 16],
] as const)
  translated.addSubnet(address, prefix, "ipv6");

/** Whether it stands for another address, so that it is never connected to. */
export function isTranslated(address: string): boolean {
  if (isIPv4(address)) return address.startsWith("0.");
  return address !== "::1" && translated.check(address, "ipv6");
}

/** Whether everybody on the internet reaches the same host by it. */
export function isPublic(address: string): boolean {
  if (isIPv4(address)) return !special.check(address, "ipv4");
  return global.check(address, "ipv6") && !special.check(address, "ipv6");
}

/** Whether it is one of this host's, or leads to itself. */
export function isOwn(address: string): boolean {
  if (address === "::1" || address.startsWith("127.") || address === "0.0.0.0") return true;
  const own = Object.values(networkInterfaces()).flat();
  return own.some((one) => one?.address === address);
}
