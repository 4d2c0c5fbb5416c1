import type { Answer } from "dns-packet";
import { expect, test } from "vitest";
import { addressesInHosts, lookUpByHost } from "../../../worker/egress/resolve.ts";
import { startNameServer } from "../../support/egress/name-server.ts";

const never = AbortSignal.any([]);
const name = "api.example.com";

const a = (data: string, ttl: number, owner = name): Answer => ({
  ...{ type: "A", name: owner, ttl, data },
});
const aaaa = (data: string, ttl: number, owner = name): Answer => ({
  ...{ type: "AAAA", name: owner, ttl, data },
});
const cname = (data: string, ttl: number): Answer => ({ type: "CNAME", name, ttl, data });

test("a name has the addresses of all its records, IPv4 first, for the shortest of their times", async () => {
  const { place, questions } = await startNameServer({
    [`A ${name}`]: [a("93.184.215.14", 60), a("93.184.215.15", 60)],
    [`AAAA ${name}`]: [aaaa("2606:2800:21f::1", 20)],
  });
  expect(await lookUpByHost(name, never, [place])).toEqual({
    addresses: ["93.184.215.14", "93.184.215.15", "2606:2800:21f::1"],
    ttlSeconds: 20,
  });
  expect(questions.toSorted()).toEqual([`A ${name}`, `AAAA ${name}`]);
});

test("an alias leads to the addresses of its name, which hold no longer than the alias", async () => {
  const canonical = "front.example.net";
  const { place } = await startNameServer({
    [`A ${name}`]: [cname(canonical, 30), a("93.184.215.14", 600, canonical)],
    [`AAAA ${name}`]: [cname(canonical, 30)],
  });
  const found = await lookUpByHost(name, never, [place]);
  expect(found).toEqual({ addresses: ["93.184.215.14"], ttlSeconds: 30 });
});

test.each<[what: string, record: string, answer: Answer, address: string]>([
  ["IPv4", "A", a("93.184.215.14", 60), "93.184.215.14"],
  ["IPv6", "AAAA", aaaa("2606:2800:21f::1", 60), "2606:2800:21f::1"],
])("a name may have addresses of %s only", async (_what, record, answer, address) => {
  const { place } = await startNameServer({ [`${record} ${name}`]: [answer] });
  expect((await lookUpByHost(name, never, [place])).addresses).toEqual([address]);
});

test("a name that does not exist has none, and is not looked for in search domains", async () => {
  const { place, questions } = await startNameServer({});
  await expect(lookUpByHost("unknown", never, [place])).rejects.toMatchObject({
    code: "ENOTFOUND",
  });
  expect(questions.toSorted()).toEqual(["A unknown", "AAAA unknown"]);
});

test("a name without addresses has none", async () => {
  const { place } = await startNameServer({ [`A ${name}`]: [] });
  await expect(lookUpByHost(name, never, [place])).rejects.toMatchObject({ code: "ENODATA" });
});

test("names of /etc/hosts are asked of nobody", async () => {
  const { place, questions } = await startNameServer({});
  const { addresses, ttlSeconds } = await lookUpByHost("localhost", never, [place]);
  expect(addresses).toContain("127.0.0.1");
  expect([ttlSeconds, questions]).toEqual([0, []]);
});

test("addresses of a file like /etc/hosts have the one spelling in which addresses are compared", () => {
  const text = [
    "0:0:0:0:0:0:0:1 api.example.com # 192.0.2.9 api.example.com",
    "2001:DB8::00ff  other API.example.com",
    "0:0:0:0:0:ffff:127.0.0.1\tapi.example.com",
    "# 192.0.2.8 api.example.com",
    "127.0.0.1 api.example.com",
    "127.1 api.example.com",
    "192.0.2.7 example.com",
  ].join("\n");
  const found = ["127.0.0.1", "::1", "2001:db8::ff", "::ffff:127.0.0.1"];
  expect(addressesInHosts(text, name)).toEqual(found);
});

test("a question ends when its signal aborts, long before a silent server's time", async () => {
  const { place, asked } = await startNameServer({
    [`A ${name}`]: "silent",
    [`AAAA ${name}`]: "silent",
  });
  const ended = new AbortController();
  const [question, startMs] = [lookUpByHost(name, ended.signal, [place]), performance.now()];
  const failed = expect(question).rejects.toMatchObject({ code: "ECANCELLED" });
  await asked();
  ended.abort();
  await failed;
  expect(performance.now() - startMs).toBeLessThan(1_900);
});

test("a silent server is given up after its time", { tags: "full" }, async () => {
  const { place, questions } = await startNameServer({
    [`A ${name}`]: "silent",
    [`AAAA ${name}`]: "silent",
  });
  await expect(lookUpByHost(name, never, [place])).rejects.toMatchObject({ code: "ETIMEOUT" });
  expect(questions).toHaveLength(4);
});
