/**
 * Assured control: how flows of guaranteed messages are opened, acknowledged and closed, and queues
 * made.
 */
import {
  type Field,
  Fields,
  MalformedError,
  encodeShortField,
  numberBytes,
  readNumber,
  readShortField,
  slice,
} from "./fields.ts";

/** What a message of the kind is about. */
export const assured = {
  openPublisher: 0,
  acknowledge: 3,
  bind: 4,
  unbind: 5,
  closePublisher: 7,
  create: 8,
  delete: 9,
} as const;

/** Types of fields. */
export const assuredField = {
  lastSent: 1,
  lastAcknowledged: 2,
  window: 3,
  settled: 5,
  flowId: 6,
  queue: 7,
  flowName: 10,
  durability: 11,
  accessType: 12,
  lastReceived: 16,
  permissions: 17,
  quotaMb: 19,
  maxMessageBytes: 20,
  granted: 21,
  respectsTimeToLive: 22,
  isActive: 32,
  behaviour: 34,
  publisherId: 35,
  maxRedeliveries: 42,
  endpointId: 44,
  maxUnsettled: 49,
  spoolerId: 54,
} as const;

/** Messages of one flow, by the first and the last of their ids, and how they ended. */
export interface SettledRange {
  readonly first: number;
  readonly last: number;
  readonly outcome: "accepted" | "failed" | "released" | "rejected";
}

const version = 3;
const versionMask = 0x3f;
const typeMask = 0x3f;
const headBytes = 6;
const outcomes = ["accepted", "failed", "released", "rejected"] as const;

/** What it is about, and its fields. Throws MalformedError. */
export function decodeAssured(payload: Buffer): { readonly type: number; readonly fields: Fields } {
  const [head = 0, type = 0] = slice(payload, 0, headBytes);
  if ((head & versionMask) !== version) throw new MalformedError("not assured control version 3");
  const end = readNumber(payload.subarray(2, headBytes));
  const body = slice(payload, 0, end);
  const fields: Field[] = [];
  for (let at = headBytes; at < end;) {
    const { field, next } = readShortField(body, at, typeMask);
    fields.push(field);
    at = next;
  }
  return { type, fields: new Fields(fields) };
}

/** The opposite of `decodeAssured`. */
export function encodeAssured(type: number, fields: Iterable<Field>): Buffer {
  const body = Buffer.concat([...fields].map(encodeShortField));
  return Buffer.concat([Buffer.of(version, type), numberBytes(headBytes + body.length, 4), body]);
}

/** What an acknowledgement says of messages that were settled. Throws MalformedError. */
export function readSettled(fields: Fields): readonly SettledRange[] {
  return fields.all(assuredField.settled).map((value) => {
    const outcome = outcomes[value[16] ?? 0];
    if (outcome === undefined) throw new MalformedError(`outcome ${value[16]}`);
    return {
      first: readNumber(slice(value, 0, 8)),
      last: readNumber(slice(value, 8, 16)),
      outcome,
    };
  });
}
