/**
 * Reads SMF, Solace's protocol, as far as it is about requests and their answers.
 */
import {
  assured,
  assuredField,
  decodeAssured,
  readSettled,
} from "../../../../harness/fakes/solace/wire/assured-control.ts";
import { Deframer } from "../../../../harness/fakes/solace/wire/deframer.ts";
import { type Frame, decodeFrame, protocol } from "../../../../harness/fakes/solace/wire/frame.ts";
import { extended, param, readExtended } from "../../../../harness/fakes/solace/wire/params.ts";
import type { WireEvent } from "../history.ts";
import { type WireReader, type WireUnit, requestIn } from "./wire.ts";

/** A request that was handed out on a flow. */
interface Unsettled {
  readonly flowId: number;
  readonly id: number;
  readonly request: string;
}

/** Reads one connection. */
export function readSmf(): WireReader {
  const [outward, inward] = [new Deframer(), new Deframer()];
  const unsettled = new Set<Unsettled>();

  const sent = (frame: Frame): readonly WireEvent[] => {
    if (frame.protocol === protocol.message && frame.isAssured) {
      const request = requestIn(frame.fields.bytes(param.topic) ?? Buffer.alloc(0));
      return request === undefined ? [{ kind: "announced" }] : [{ kind: "answered", request }];
    }
    return frame.protocol === protocol.assuredControl ? settledBy(frame, unsettled) : [];
  };
  const received = ({ protocol: kind, isAssured, fields, payload }: Frame) => {
    if (kind !== protocol.message || !isAssured) return [];
    const request = requestIn(payload);
    if (request === undefined) return [];
    const [flowId, id] = [fields.number(param.flowId, 4)!, fields.number(param.messageId, 8)!];
    unsettled.add({ flowId, id, request });
    const before = readExtended(fields).number(extended.redeliveryCount, 4) ?? 0;
    const isRepeated = fields.has(param.redelivered);
    return [{ kind: "delivered", request, count: 1 + before, isRepeated } as const];
  };
  return {
    outward: (chunk) => unitsOf(outward, chunk, sent),
    inward: (chunk) => unitsOf(inward, chunk, received),
  };
}

function* unitsOf(
  deframer: Deframer,
  chunk: Buffer,
  read: (frame: Frame) => readonly WireEvent[],
): Generator<WireUnit> {
  for (const bytes of deframer.push(chunk)) yield { bytes, events: read(decodeFrame(bytes)) };
}

/** The library repeats what it has said before: only what was not settled yet is new. */
function settledBy({ payload }: Frame, unsettled: Set<Unsettled>): readonly WireEvent[] {
  const { type, fields } = decodeAssured(payload);
  if (type !== assured.acknowledge) return [];
  const flowId = fields.number(assuredField.flowId, 4);
  return readSettled(fields).flatMap(({ first, last, outcome }) => {
    const meant = [...unsettled].filter(
      (entry) => entry.flowId === flowId && entry.id >= first && entry.id <= last,
    );
    for (const entry of meant) unsettled.delete(entry);
    const told = outcome === "released" ? "failed" : outcome;
    return meant.map(({ request }) => ({ kind: "settled", request, outcome: told }) as const);
  });
}
