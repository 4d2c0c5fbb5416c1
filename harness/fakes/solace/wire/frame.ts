/**
 * SMF frames: a word of flags, the lengths of header and frame, parameters, payload.
 */
import { MalformedError, type Field, slice } from "./fields.ts";
import { type Params, decodeParams, encodeParams } from "./params.ts";

/** What the payload of a frame is. */
export const protocol = {
  assuredControl: 9,
  keepAlive: 10,
  keepAliveV2: 11,
  clientControl: 12,
  message: 13,
  subscription: 15,
} as const;

/** The largest frame that is taken: the largest message of a broker, and its header. */
export const maxFrameBytes = 32 * 1024 * 1024;

/** The largest header that is taken; what is longest in it is an access token. */
export const maxHeaderBytes = 256 * 1024;

/** Bytes before the parameters. */
export const preludeBytes = 12;

const version = 3;
const assuredBit = 1 << 28;
const deadMessageEligibleBit = 1 << 27;
const maxPriority = 15;
/** Hops that a frame of ours may make. */
const timeToLiveHops = 1;

/** A frame, taken apart. */
export interface Frame extends Params {
  readonly protocol: number;
  /** Whether a message travels on a flow, with an id and to be acknowledged. */
  readonly isAssured: boolean;
  /** Whether a message goes to the dead message queue when nobody can be given it. */
  readonly isDeadMessageEligible: boolean;
  readonly priority: number;
  readonly payload: Buffer;
  /** The frame as it came. */
  readonly bytes: Buffer;
}

/** A frame to be sent. */
export interface OutboundFrame {
  readonly protocol: number;
  readonly isAssured?: boolean;
  readonly isDeadMessageEligible?: boolean;
  readonly priority?: number;
  readonly correlationTag?: number | undefined;
  readonly fields?: readonly Field[];
  readonly payload?: Buffer;
}

/**
 * How long the frame is that begins with these bytes, at least `preludeBytes` of them. Throws
 * MalformedError.
 */
export function frameLength(prelude: Buffer): number {
  if (((prelude[0] ?? 0) & 0b111) !== version) throw new MalformedError("not SMF version 3");
  const headerLength = prelude.readUInt32BE(4);
  const length = prelude.readUInt32BE(8);
  if (headerLength < preludeBytes || headerLength > length || headerLength > maxHeaderBytes) {
    throw new MalformedError(`a header of ${headerLength} bytes in a frame of ${length}`);
  }
  if (length > maxFrameBytes) {
    throw new MalformedError(`a frame of ${length} bytes; at most ${maxFrameBytes} are taken`);
  }
  return length;
}

/** Takes one whole frame apart; what it returns are views of `bytes`. Throws MalformedError. */
export function decodeFrame(bytes: Buffer): Frame {
  const flags = bytes.readUInt32BE(0);
  const headerLength = bytes.readUInt32BE(4);
  return {
    ...decodeParams(slice(bytes, preludeBytes, headerLength)),
    protocol: (flags >> 16) & 0x3f,
    isAssured: (flags & assuredBit) !== 0,
    isDeadMessageEligible: (flags & deadMessageEligibleBit) !== 0,
    priority: (flags >> 12) & maxPriority,
    payload: bytes.subarray(headerLength),
    bytes,
  };
}

/** The bytes of a frame. */
export function encodeFrame(frame: OutboundFrame): Buffer {
  const params = encodeParams(frame.fields ?? [], frame.correlationTag);
  const payload = frame.payload ?? Buffer.alloc(0);
  const prelude = Buffer.alloc(preludeBytes);
  const flags =
    (frame.isAssured ? assuredBit : 0) |
    (frame.isDeadMessageEligible ? deadMessageEligibleBit : 0) |
    (version << 24) |
    (frame.protocol << 16) |
    ((frame.priority ?? 0) << 12) |
    timeToLiveHops;
  prelude.writeUInt32BE(flags, 0);
  prelude.writeUInt32BE(preludeBytes + params.length, 4);
  prelude.writeUInt32BE(preludeBytes + params.length + payload.length, 8);
  return Buffer.concat([prelude, params, payload]);
}
