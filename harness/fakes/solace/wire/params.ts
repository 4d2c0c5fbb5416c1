/**
 * The parameters in the header of an SMF frame.
 */
import {
  type Field,
  Fields,
  MalformedError,
  encodeShortField,
  numberBytes,
  numberField,
  readNumber,
  readShortField,
  slice,
} from "./fields.ts";

/** Types of parameters, as far as the broker knows what they mean. */
export const param = {
  publisherId: 1,
  username: 6,
  password: 7,
  response: 8,
  deliveryMode: 16,
  messageId: 17,
  previousMessageId: 18,
  redelivered: 19,
  contentSummary: 22,
  flowId: 23,
  topic: 24,
  timeToLiveMs: 28,
  extended: 31,
} as const;

/** Values of the delivery mode. */
export const deliveryMode = { nonPersistent: 0, persistent: 1, direct: 2 } as const;

/** The parameters of one frame. */
export interface Params {
  /** What an answer has to repeat. */
  readonly correlationTag: number | undefined;
  readonly fields: Fields;
}

/** A code and a text in the manner of HTTP; 200 is success. */
export interface Response {
  readonly code: number;
  readonly text: string;
}

/** The bit that tells a light parameter, whose length is in its first byte, from a standard one. */
const lightBit = 0x20;
const standardTypeMask = 0x1f;
const lightCorrelationTag = 0;

/** Types of extended parameters, which travel together in one standard parameter. */
export const extended = {
  /** How often a message was handed out before. */
  redeliveryCount: 0x2e,
  accessToken: 0x31,
} as const;

/** Bytes of an extended parameter's value, by the three bits above its type. */
const extendedWidths = [0, 1, 2, 4, 8];
/**
 * Widths that are told by one and by two bytes of their own, which count themselves and the type.
 */
const shortLength = 5;
const longLength = 6;

/** Takes the parameters of a header apart. Throws MalformedError. */
export function decodeParams(bytes: Buffer): Params {
  let correlationTag: number | undefined;
  const fields: Field[] = [];
  for (let at = 0; at < bytes.length;) {
    const head = bytes[at] ?? 0;
    if (head & lightBit) {
      const end = at + 1 + (head & 0b11);
      const value = slice(bytes, at + 1, end);
      if (((head >> 2) & 0b111) === lightCorrelationTag) correlationTag = readNumber(value);
      at = end;
    } else {
      const { field, next } = readShortField(bytes, at, standardTypeMask);
      fields.push(field);
      at = next;
    }
  }
  return { correlationTag, fields: new Fields(fields) };
}

/** The opposite of `decodeParams`. */
export function encodeParams(fields: readonly Field[], correlationTag?: number): Buffer {
  const tag =
    correlationTag === undefined
      ? []
      : [Buffer.of(lightBit | (lightCorrelationTag << 2) | 3), numberBytes(correlationTag, 3)];
  return Buffer.concat([...tag, ...fields.map(encodeShortField)]);
}

/** What a broker says to a request. */
export function responseParam({ code, text }: Response): Field {
  return {
    type: param.response,
    value: Buffer.concat([numberBytes(code, 4), Buffer.from(text)]),
  };
}

/** The extended parameters of a header. Throws MalformedError. */
export function readExtended(fields: Fields): Fields {
  const bytes = fields.bytes(param.extended) ?? Buffer.alloc(0);
  const list: Field[] = [];
  for (let at = 0; at < bytes.length;) {
    const head = readNumber(slice(bytes, at, at + 2));
    const { start, end } = extendedValue(bytes, at, (head >> 12) & 0b111);
    list.push({ type: head & 0xfff, value: slice(bytes, start, end) });
    at = end;
  }
  return new Fields(list);
}

/** Where the value of the extended parameter at `at` starts and ends. */
function extendedValue(
  bytes: Buffer,
  at: number,
  mode: number,
): { readonly start: number; readonly end: number } {
  const width = extendedWidths[mode];
  if (width !== undefined) return { start: at + 2, end: at + 2 + width };
  if (mode !== shortLength && mode !== longLength) {
    throw new MalformedError(`an extended parameter of width ${mode}`);
  }
  const start = at + (mode === shortLength ? 3 : 4);
  return { start, end: at + readNumber(slice(bytes, at + 2, start)) };
}

/** How often a message was handed out before this time. */
export function redeliveryCountParam(count: number): Field {
  const head = numberBytes((extendedWidths.indexOf(4) << 12) | extended.redeliveryCount, 2);
  return { type: param.extended, value: Buffer.concat([head, numberBytes(count, 4)]) };
}

export function deliveryModeParam(mode: number): Field {
  return numberField(param.deliveryMode, mode, 1);
}
