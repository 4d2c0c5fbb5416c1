import { describe, expect, test } from "vitest";
import { knowsName, grantFor, portsOf } from "../../../worker/egress/policy.ts";
import { isPublicOnly, meet } from "../../../worker/protocol/network-meet.ts";
import {
  type Network,
  type NetworkPolicy,
  networkField,
  publicNetwork,
  toNetwork,
} from "../../../worker/protocol/network-rules.ts";

const network = (field: unknown): Network => toNetwork(networkField.parse(field));

function policy(...allow: readonly unknown[]): NetworkPolicy {
  const made = network({ allow });
  if (typeof made === "string") throw new Error(`it is ${made}`);
  return made;
}

const name = (host: string, port = 443) => ({ kind: "name", name: host, port }) as const;
const address = (host: string, port = 443) => ({ kind: "address", address: host, port }) as const;

describe("a rule", () => {
  test.each([
    ["api.example.com", name("api.example.com"), true],
    ["api.example.com", name("api.example.com", 80), false],
    ["api.example.com", name("x.api.example.com"), false],
    ["API.Example.COM.", name("api.example.com"), true],
    ["bücher.example", name("xn--bcher-kva.example"), true],
    ["xn--bcher-kva.example", name("xn--bcher-kva.example"), true],
    ["*.example.org:443,8443", name("a.b.example.org", 8443), true],
    ["*.example.org", name("example.org"), false],
    ["*.example.org", name("badexample.org"), false],
    [".example.org", name("example.org"), true],
    [".example.org", name("a.example.org"), true],
    [".example.org", name("badexample.org"), false],
    // Resolvers end at the zero byte, and programs read other names in others.
    ["*.example.org", name("evil.test\0.example.org"), false],
    [".example.org", name("a b.example.org"), false],
    ["*.example.org", name("a\\.example.org"), false],
    ["*.example.org", name(`${"a".repeat(64)}.example.org`), false],
    ["192.0.2.10:22", address("192.0.2.10", 22), true],
    ["192.0.2.10:22", address("192.0.2.11", 22), false],
    [{ host: "192.0.2.0/24", ports: [22] }, address("192.0.2.200", 22), true],
    [{ host: "192.0.2.0/24", ports: [22] }, address("192.0.3.1", 22), false],
    // What a name leads to is not what its address leads to.
    ["192.0.2.10", name("192.0.2.10"), false],
    ["api.example.com", address("93.184.215.14"), false],
  ])("%j decides about %j: %s", (rule, destination, isAllowed) => {
    expect(grantFor(policy(rule), destination) !== undefined).toBe(isAllowed);
  });

  test("grants what it says, and nothing else does", () => {
    const rules = policy("a.example.com", { host: "b.example.com", private: true, sni: "any" });
    expect(grantFor(rules, name("a.example.com"))).toEqual({
      rules: ["a.example.com"],
      allowsPrivate: false,
      allowsAnySni: false,
    });
    expect(grantFor(rules, name("b.example.com"))).toEqual({
      rules: ["{ host: b.example.com, private: true, sni: any }"],
      allowsPrivate: true,
      allowsAnySni: true,
    });
  });
});

describe("two lists that meet", () => {
  const both = meet(
    policy("*.example.com:443,80", { host: "b.example.com", private: true }),
    policy({ host: "a.example.com", private: true }, "b.example.com:443,80"),
  ) as NetworkPolicy;

  test("allow what both allow", () => {
    expect(grantFor(both, name("a.example.com"))).toBeDefined();
    expect(grantFor(both, name("a.example.com", 80))).toBeUndefined();
    expect(grantFor(both, name("c.example.com"))).toBeUndefined();
    expect(knowsName(both, "c.example.com")).toBe(false);
    expect(portsOf(both)).toEqual([443, 80]);
  });

  test("allow private addresses only where both say so", () => {
    expect(grantFor(both, name("b.example.com"))?.allowsPrivate).toBe(false);
    expect(grantFor(both, name("a.example.com"))?.allowsPrivate).toBe(false);
  });

  test.each([
    ["none", "host", "none"],
    ["host", "host", "host"],
    ["none", policy("a.example.com"), "none"],
    ["host", policy("a.example.com"), policy("a.example.com")],
  ] as const)("are %j and %j: %j", (a, b, expected) => {
    expect(meet(a, b)).toEqual(expected);
    expect(meet(b, a)).toEqual(expected);
  });
});

/** Policies of public addresses. */
function open(more: object): NetworkPolicy {
  return network({ public: true, ...more }) as NetworkPolicy;
}

describe("public", () => {
  test("is every name and every address on ports 80 and 443, and grants no more", () => {
    expect(network("public")).toEqual(publicNetwork);
    expect(network({ public: true })).toEqual(publicNetwork);
    expect(portsOf(publicNetwork)).toEqual([80, 443]);
    const granted = { rules: ["public"], allowsPrivate: false, allowsAnySni: false };
    for (const port of [80, 443])
      for (const destination of [name("a.example.com", port), address("93.184.215.14", port)])
        expect(grantFor(publicNetwork, destination)).toEqual(granted);
    expect(grantFor(publicNetwork, name("a.example.com", 22))).toBeUndefined();
  });

  test("has other ports where they are given, in place of these", () => {
    expect(portsOf(open({ ports: [8443] }))).toEqual([8443]);
    expect(grantFor(open({ ports: [8443] }), name("a.example.com"))).toBeUndefined();
  });

  test.each([
    ["api.example.com", true],
    ["xn--bcher-kva.example", true],
    ["_dmarc.example.com", true],
    ["localhost", true],
    ["", false],
    ["a..example.com", false],
    [".example.com", false],
    ["a b.example.com", false],
    ["127.0.0.1", false],
    ["127.1", false],
    ["2130706433", false],
    ["a.0x7f", false],
    [`${"a".repeat(63)}.example`, true],
    [`${"a".repeat(64)}.example`, false],
    [`${"a.".repeat(126)}b`, true],
    [`${"a.".repeat(127)}b`, false],
  ])("knows the name %j: %s", (host, isKnown) => {
    expect(knowsName(publicNetwork, host)).toBe(isKnown);
  });

  test("can have a list beside it, which says more of its hosts", () => {
    const both = open({ allow: [{ host: "db.internal", ports: [5432], private: true }] });
    expect(portsOf(both)).toEqual([80, 443, 5432]);
    expect(grantFor(both, name("db.internal", 5432))?.allowsPrivate).toBe(true);
    expect(grantFor(both, name("db.internal"))?.allowsPrivate).toBe(false);
    expect(grantFor(both, name("a.example.com", 5432))).toBeUndefined();
  });

  const list = policy({ host: ".example.com", ports: [80, 443, 22], private: true, sni: "any" });

  test("leaves a list that it meets its hosts, where they are public and on its ports", () => {
    for (const met of [meet(publicNetwork, list), meet(list, publicNetwork)]) {
      const rules = met as NetworkPolicy;
      expect(portsOf(rules)).toEqual([80, 443]);
      expect(grantFor(rules, name("a.example.com"))).toMatchObject({
        allowsPrivate: false,
        allowsAnySni: false,
      });
      expect(grantFor(rules, name("a.example.org"))).toBeUndefined();
      expect(isPublicOnly(met)).toBe(false);
    }
  });

  test.each([{ private: true }, { sni: "any" }])("takes %j from it", (more) => {
    const met = meet(policy({ host: "a.example.com", ...more }), publicNetwork) as NetworkPolicy;
    expect(grantFor(met, name("a.example.com"))).toMatchObject({
      allowsPrivate: false,
      allowsAnySni: false,
    });
  });

  test("and public are what both have, as often as they meet", () => {
    const narrow = open({ ports: [443, 8443], max_connections: 3 });
    const met = meet(publicNetwork, narrow);
    expect(portsOf(met as NetworkPolicy)).toEqual([443]);
    expect(met).toMatchObject({ maxConnections: 3 });
    expect(isPublicOnly(met)).toBe(true);
    expect(meet(met, narrow)).toEqual(met);
    expect(portsOf(meet(open({ ports: [80] }), open({ ports: [443] })) as NetworkPolicy)).toEqual(
      [],
    );
  });

  test.each(
    (
      [
        ["none", list],
        ["none", "host"],
        [policy("a.example.com:80,443"), publicNetwork],
        [policy("a.example.com:80"), policy("b.example.com", "a.example.com:80,443")],
        [policy("A.example.com"), policy("a.example.com", "b.example.com")],
        [policy("a.example.com"), policy("*.example.com")],
        [policy("a.example.com"), policy({ host: "a.example.com", private: true, sni: "any" })],
        [open({ ports: [443] }), publicNetwork],
        [publicNetwork, "host"],
        [list, "host"],
        [list, list],
        [publicNetwork, publicNetwork],
      ] as const
    ).map(([tight, wide]) => [tight, wide]),
  )("orders networks: %j is within %j", (tight, wide) => {
    expect(meet(tight, wide)).toEqual(tight);
    expect(meet(wide, tight)).toEqual(tight);
  });

  test("is not within a list, nor a list with private hosts within it", () => {
    expect(meet(publicNetwork, list)).not.toEqual(publicNetwork);
    expect(meet(list, publicNetwork)).not.toEqual(list);
  });

  test.each([
    [{ public: false }, /expected true/],
    [{ public: true, ports: [53] }, /a list of ports/],
    [{ public: true, ports: [] }, /a list of ports/],
    [{ allow: ["a.example.com"], ports: [80] }, /belongs to/],
    [{ max_connections: 3 }, /a map with \\"allow\\" or \\"public\\"/],
    [{ public: true, ports: Array.from({ length: 65 }, (_, at) => 1000 + at) }, /64 different/],
  ])("refuses %j", (field, message) => {
    const { error } = networkField.safeParse(field);
    expect(JSON.stringify(error?.issues)).toMatch(message);
  });
});

test("an empty list is no network, never everything", () => {
  expect(network({ allow: [] })).toBe("none");
  const nothing = { lists: [[]], maxConnections: 1 };
  expect(grantFor(nothing, name("a.example.com"))).toBeUndefined();
  expect(grantFor({ ...nothing, lists: [] }, name("a.example.com"))).toBeUndefined();
});

describe("a list is refused for", () => {
  test.each([
    ["a URL", "https://api.example.com", /^(?!.*ports, 1).*a URL/],
    ["a path", "api.example.com/v1", /a path/],
    ["everything", "*", /bare \*/],
    ["a top-level domain", "*.com", /top-level domain/],
    ["a top-level domain with its apex", ".com", /top-level domain/],
    ["a star inside", "api.*.example.com", /first label/],
    ["a user", "user@example.com", /user name/],
    ["a user with a password", "user:secret@example.com", /^(?!.*secret).*user name/],
    ["two ports", "example.com:1:2", /no valid host name/],
    ["a port that is none", "example.com:70000", /ports/],
    ["port 0", "example.com:0", /ports/],
    ["an empty port", "example.com:", /ports/],
    ["the port of name service", "example.com:53", /ports/],
    ["a name that IDNA refuses", "xn--iñvalid.com", /no valid host name/],
    ["a hexadecimal address", "0x7f.1", /four decimal numbers/],
    ["an address in one number", "2130706433", /four decimal numbers/],
    ["an octal address", "0177.0.0.1", /four decimal numbers/],
    ["a name that is no encoding of IDNA", "xn--a.example.com", /no encoding of IDNA/],
    ["a short address", "127.1", /four decimal numbers/],
    ["a range that is none", "192.0.2.0/33", /a range/],
    ["nothing", "", /no valid host name/],
  ])("%s", (_what, rule, message) => {
    for (const entry of [rule, { host: rule.replace(/:\d*$/, ""), ports: [443] }]) {
      const hasPort = /:\d*$/.test(rule) && !rule.includes("//");
      if (typeof entry !== "string" && hasPort) continue;
      const { error } = networkField.safeParse({ allow: [entry] });
      expect(JSON.stringify(error?.issues)).toMatch(message);
    }
  });

  test("IPv6, which there is not inside", () => {
    for (const host of ["2001:db8::1", "[2001:db8::1]"]) {
      for (const entry of [{ host }, host]) {
        const { error } = networkField.safeParse({ allow: [entry] });
        expect(JSON.stringify(error?.issues)).toMatch(/no IPv6 inside/);
      }
    }
  });

  test("keys that it does not have, and too many rules", () => {
    expect(networkField.safeParse({ allow: [], udp: true }).success).toBe(false);
    expect(networkField.safeParse({ allow: [{ host: "a.example", udp: true }] }).success).toBe(
      false,
    );
    const many = Array.from({ length: 257 }, (_, index) => `h${index}.example`);
    expect(networkField.safeParse({ allow: many }).success).toBe(false);
  });
});
