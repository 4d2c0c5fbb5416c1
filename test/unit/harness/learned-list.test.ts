import { expect, test } from "vitest";
import { learningNetwork } from "../../../harness/network/learn.ts";
import { learnedNetwork, learnedRefusals } from "../../../harness/network/learned-list.ts";
import { grantFor } from "../../../worker/egress/policy.ts";
import { networkField, toNetwork } from "../../../worker/protocol/network-rules.ts";
import type { EndedConnection } from "../../../worker/sandbox/network/sockets.ts";
import { readDocument } from "../../../worker/support/json/yaml-document.ts";

const nothing = { rules: [], sentBytes: 0, receivedBytes: 0, durationMs: 0 };

const to = (name: string, port = 443): EndedConnection => ({
  ...{ ...nothing, name, address: "93.184.215.14", port },
});

test("a run's list has each host once, with its ports", () => {
  const connections = [
    to("b.example.com"),
    to("a.example.com", 8443),
    to("a.example.com"),
    to("b.example.com"),
    to("c.example.com", 80),
    { ...nothing, address: "192.0.2.10", port: 22 },
    { ...to("refused.example.com"), refusal: "sni" as const },
  ];
  const text = learnedNetwork(connections);
  expect(text).toBe(`network:
  allow:
    - 192.0.2.10:22
    - a.example.com:443,8443
    - b.example.com
    - c.example.com:80
`);
  const reading = readDocument(Buffer.from(text));
  if (!reading.ok) throw new Error(text);
  const { network: field } = reading.document.value as { network: unknown };
  const network = toNetwork(networkField.parse(field));
  if (typeof network === "string") throw new Error(network);
  const granted = connections.map(({ name, address = "", port = 0 }) => {
    const kind = name === undefined ? "address" : "name";
    return grantFor(network, { kind, name: name ?? "", address, port }) !== undefined;
  });
  expect(granted).toEqual([true, true, true, true, true, true, false]);
});

test("a run without a connection needs no network", () => {
  expect(learnedNetwork([])).toBe("network: none\n");
  expect(learnedNetwork([{ ...to("a.example.com"), refusal: "unreachable" }])).toBe(
    "network: none\n",
  );
});

test("refusals say what an entry would have to say, once each", () => {
  const refused = (refusal: EndedConnection["refusal"], name = "a.example.com", port = 443) => ({
    ...{ ...to(name, port), refusal: refusal! },
  });
  const asked = { ...nothing, name: "secret.attacker.example", refusal: "name-not-allowed" };
  expect(
    learnedRefusals([
      refused("not-public", "db.internal", 5432),
      refused("not-public", "db.internal", 5432),
      refused("sni"),
      refused("unreachable"),
      asked as EndedConnection,
      to("b.example.com"),
    ]),
  ).toEqual([
    "refused: db.internal:5432, not-public; it takes { host: db.internal, ports: [5432], private: true }",
    "refused: a.example.com:443, sni; it takes { host: a.example.com, ports: [443], sni: any }",
    "refused: a.example.com:443, unreachable",
    "refused: secret.attacker.example, name-not-allowed",
  ]);
});

test("a run that learns may reach every name and address on usual ports, and no private ones", () => {
  const network = learningNetwork();
  for (const destination of [
    { kind: "name", name: "a.example.com", port: 443 },
    { kind: "name", name: "db.example.com", port: 5432 },
    { kind: "address", address: "93.184.215.14", port: 22 },
  ] as const)
    expect(grantFor(network, destination)).toMatchObject({
      ...{ allowsPrivate: false, allowsAnySni: false },
    });
});
