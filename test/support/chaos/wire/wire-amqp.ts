/**
 * Reads AMQP 0-9-1, as far as it is about requests and their answers.
 */
import type { WireEvent } from "../history.ts";
import { type WireReader, type WireUnit, requestIn } from "./wire.ts";

/** What a client says first, before any frame. */
const greeting = "AMQP";
const greetingBytes = 8;

/** Type, channel and size before the payload of a frame, and the octet after it. */
const headBytes = 7;
const tailBytes = 1;

const frameTypes = { method: 1, header: 2, body: 3 } as const;

/** Class and method, as the first four octets of a method's payload. */
const methods = {
  publish: 0x3c_0028,
  returned: 0x3c_0032,
  deliver: 0x3c_003c,
  getOk: 0x3c_0047,
  ack: 0x3c_0050,
  reject: 0x3c_005a,
  nack: 0x3c_0078,
} as const;

const methodsWithContent: readonly number[] = [
  methods.publish,
  methods.returned,
  methods.deliver,
  methods.getOk,
];

/** A method, with its message where it has one. */
interface Command {
  readonly channel: number;
  readonly method: number;
  /** What follows class and method. */
  readonly args: Buffer;
  readonly content: Buffer;
}

/** Reads one connection. */
export function readAmqp(): WireReader {
  const [outward, inward] = [new Commands(), new Commands()];
  /** Requests by channel and delivery tag. */
  const unsettled = new Map<string, string>();

  const sent = ({ channel, method, args }: Command): readonly WireEvent[] => {
    if (method === methods.publish) {
      const request = requestIn(args);
      return request === undefined ? [{ kind: "announced" }] : [{ kind: "answered", request }];
    }
    const outcome = outcomeOf(method, args);
    if (outcome === undefined) return [];
    const key = `${channel}:${args.readBigUInt64BE(0)}`;
    const request = unsettled.get(key);
    unsettled.delete(key);
    return request === undefined ? [] : [{ kind: "settled", request, outcome }];
  };
  const received = ({ channel, method, args, content }: Command): readonly WireEvent[] => {
    if (method !== methods.deliver && method !== methods.getOk) return [];
    const request = requestIn(content);
    if (request === undefined) return [];
    const at = method === methods.getOk ? 0 : 1 + args.readUInt8(0);
    unsettled.set(`${channel}:${args.readBigUInt64BE(at)}`, request);
    const isRepeated = args.readUInt8(at + 8) !== 0;
    return [{ kind: "delivered", request, count: 1 + deliveriesBefore(content), isRepeated }];
  };
  return {
    outward: (chunk) => outward.push(chunk, sent),
    inward: (chunk) => inward.push(chunk, received),
  };
}

/** One direction, cut into commands. */
class Commands {
  #rest = Buffer.alloc(0);
  /** Commands whose content is not complete, by channel. */
  readonly #open = new Map<number, { frames: Buffer[]; missing: number }>();

  *push(chunk: Buffer, read: (command: Command) => readonly WireEvent[]): Generator<WireUnit> {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const frame = this.#nextFrame();
      if (frame === undefined) return;
      const unit = this.#complete(frame);
      if (unit !== undefined) yield { bytes: Buffer.concat(unit), events: eventsOf(unit, read) };
    }
  }

  #nextFrame(): Buffer | undefined {
    const rest = this.#rest;
    if (rest.length < greetingBytes) return undefined;
    const isGreeting = rest.toString("latin1", 0, greeting.length) === greeting;
    const length = isGreeting ? greetingBytes : headBytes + rest.readUInt32BE(3) + tailBytes;
    if (rest.length < length) return undefined;
    this.#rest = rest.subarray(length);
    return rest.subarray(0, length);
  }

  /** The frames of what is complete with this one. */
  #complete(frame: Buffer): readonly Buffer[] | undefined {
    const channel = frame.readUInt16BE(1);
    const open = this.#open.get(channel);
    switch (frame[0]) {
      case frameTypes.method:
        if (!methodsWithContent.includes(frame.readUInt32BE(headBytes))) return [frame];
        this.#open.set(channel, { frames: [frame], missing: 0 });
        return undefined;
      case frameTypes.header:
        open!.frames.push(frame);
        open!.missing = Number(frame.readBigUInt64BE(headBytes + 4));
        break;
      case frameTypes.body:
        open!.frames.push(frame);
        open!.missing -= frame.length - headBytes - tailBytes;
        break;
      default:
        return [frame];
    }
    if (open!.missing > 0) return undefined;
    this.#open.delete(channel);
    return open!.frames;
  }
}

function eventsOf(
  [first, ...content]: readonly Buffer[],
  read: (command: Command) => readonly WireEvent[],
): readonly WireEvent[] {
  if (first![0] !== frameTypes.method) return [];
  return read({
    channel: first!.readUInt16BE(1),
    method: first!.readUInt32BE(headBytes),
    args: first!.subarray(headBytes + 4),
    content: Buffer.concat(content),
  });
}

/** How a method settles deliveries; this project's adapter settles one at a time. */
function outcomeOf(method: number, args: Buffer) {
  switch (method) {
    case methods.ack:
      return "accepted";
    case methods.reject:
      return args.readUInt8(8) === 0 ? "rejected" : "failed";
    case methods.nack:
      return (args.readUInt8(8) & 0b10) === 0 ? "rejected" : "failed";
    default:
      return undefined;
  }
}

/**
 * What quorum queues say of a message that they have handed out before, as a number of eight
 * octets.
 */
function deliveriesBefore(content: Buffer): number {
  const name = "x-delivery-countl";
  const at = content.indexOf(name, 0, "latin1");
  return at === -1 ? 0 : Number(content.readBigInt64BE(at + name.length));
}
