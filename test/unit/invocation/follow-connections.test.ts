/**
 * What becomes of the connections of a call's sandbox.
 */
import { expect, test, vi } from "vitest";
import type { CallAudit } from "../../../worker/invocation/audit/call-audit.ts";
import { followConnections } from "../../../worker/invocation/steps/follow-connections.ts";
import { NetworkRecord } from "../../../worker/egress/record.ts";
import { maxListedRefusals } from "../../../worker/sandbox/network/sockets.ts";
import { ToolEgress } from "../../../worker/telemetry/metrics/egress-counts.ts";

const destination = { kind: "name", name: "api.example.com", port: 443 } as const;

function newCall() {
  const recordConnection = vi.fn<CallAudit["recordConnection"]>();
  const audit = { recordConnection } as Partial<CallAudit> as CallAudit;
  return { counts: new ToolEgress(), audit, recordConnection };
}

test("all connections of a call are counted, and of the refused ones the first are in the audit log", () => {
  const { counts, audit, recordConnection } = newCall();
  const record = new NetworkRecord({ monotonicMs: () => 0 });
  record.begin(destination).end();
  followConnections(record, () => counts, audit);
  for (let n = 0; n < maxListedRefusals + 5; n++) record.begin(destination).end("no-rule");
  record.begin(destination).end();
  expect(counts).toMatchObject({ allowed: 2, refused: maxListedRefusals + 5 });
  expect(recordConnection).toHaveBeenCalledTimes(maxListedRefusals + 2);
});

test("without an audit log connections are counted all the same, and open ones until the end of the call", () => {
  const { counts } = newCall();
  const record = new NetworkRecord({ monotonicMs: () => 0 });
  const connection = record.begin(destination);
  const followed = followConnections(record, () => counts, undefined);
  expect(counts.open).toBe(1);
  connection.sent(5);
  followed![Symbol.dispose]();
  expect(counts.open).toBe(0);
  // The sandbox ends its connections after the call.
  connection.end();
  expect(counts).toMatchObject({ allowed: 1, sentBytes: 5 });
});

test("a sandbox without a network of its own has no counts", () => {
  const { audit } = newCall();
  const never = (): never => expect.unreachable();
  expect(followConnections(undefined, never, audit)).toBeUndefined();
});
