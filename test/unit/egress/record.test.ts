import { describe, expect, test } from "vitest";
import { NetworkRecord, maxRefusals } from "../../../worker/egress/record.ts";
import { type EndedConnection, maxListedRefusals } from "../../../worker/sandbox/network/sockets.ts";

function newRecord() {
  let nowMs = 0;
  const record = new NetworkRecord({ monotonicMs: () => nowMs });
  const ended: EndedConnection[] = [];
  return {
    ...{ record, ended },
    follow: () => record.follow((connection) => ended.push(connection)),
    pass: (ms: number) => (nowMs += ms),
  };
}

const destination = { kind: "name", name: "api.example.com", port: 443 } as const;

describe("the connections of a sandbox", () => {
  test("are those before the call, once it follows them, and each later one as it ends", () => {
    const { record, ended, follow, pass } = newRecord();
    const early = record.begin(destination);
    early.rules = ["api.example.com"];
    early.address = "93.184.215.14";
    early.sent(5);
    early.received(7);
    pass(12.4);
    early.end();
    const late = record.begin({ kind: "address", address: "192.0.2.1", port: 22 });
    expect(ended).toEqual([]);
    expect(record.open).toBe(1);
    follow();
    const nothing = { rules: [], sentBytes: 0, receivedBytes: 0, durationMs: 0 };
    const first = {
      ...{ name: "api.example.com", address: "93.184.215.14", port: 443 },
      ...{ rules: ["api.example.com"], sentBytes: 5, receivedBytes: 7, durationMs: 12 },
    };
    expect(ended).toEqual([first]);
    late.end("no-rule");
    const second = { ...nothing, address: "192.0.2.1", port: 22, refusal: "no-rule" };
    expect(ended).toEqual([first, second]);
    expect(record).toMatchObject({ open: 0, sentBytes: 5, receivedBytes: 7, refused: 1 });
    expect(record.refusals).toEqual([{ host: "192.0.2.1", port: 22, reason: "no-rule" }]);
  });

  test("end once, as they ended first", () => {
    const { record, ended, follow } = newRecord();
    follow();
    const connection = record.begin(destination);
    connection.end("sni");
    connection.end();
    connection.end("unreachable");
    expect(ended).toMatchObject([{ refusal: "sni" }]);
    expect(record).toMatchObject({ open: 0, refused: 1 });
  });

  test("that are refused wait for the call up to a limit, and are all counted", () => {
    const { record, ended, follow } = newRecord();
    for (let n = 0; n <= maxListedRefusals; n++) record.refuseName(`n${n}.example.com`);
    record.begin(destination).end();
    follow();
    expect(ended).toHaveLength(maxListedRefusals + 1);
    expect(ended.at(0)).toMatchObject({ name: "n0.example.com", refusal: "name-not-allowed" });
    expect(ended.at(-1)).toMatchObject({ name: "api.example.com", sentBytes: 0 });
    record.refuseName("one.example.com");
    record.begin(destination).end("no-rule");
    expect(ended.slice(-2)).toMatchObject([{ name: "one.example.com" }, { refusal: "no-rule" }]);
    expect(record.refused).toBe(maxListedRefusals + 3);
    expect(record.refusals).toHaveLength(maxRefusals);
  });

  test("are told from what is refused in place of one", () => {
    const { record, ended, follow } = newRecord();
    follow();
    record.refuseName("one.example.com");
    const connection = record.begin(destination);
    connection.refuseRequest("request");
    expect(record.open).toBe(1);
    connection.end();
    expect(ended.map(({ refusedPart }) => refusedPart)).toEqual(["name", "request", undefined]);
  });
});

test("a refused name is counted once, as long as few are", () => {
  const { record } = newRecord();
  const names = Array.from({ length: 200 }, (_, index) => `n${index}.example.com`);
  for (const name of [...names, ...names]) record.refuseName(name);
  expect(record.refused).toBe(200);
  for (const name of ["late.example.com", "late.example.com"]) record.refuseName(name);
  expect(record.refused).toBe(202);
});

test("a name that no host has is counted, and not repeated", () => {
  const { record } = newRecord();
  for (const name of ["evil.test\0.example.com", "\u001b[2jdo as i say.example.com"])
    record.refuseName(name);
  expect(record).toMatchObject({ refused: 2, refusals: [{ host: "(no name of a host)" }] });
});
