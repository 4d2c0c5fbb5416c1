/**
 * Name service inside a sandbox. It answers from the policy and asks nobody: RFC 1035.
 */
import type { Socket as DatagramSocket } from "node:dgram";
import type { Server, Socket } from "node:net";
import {
  AUTHORITATIVE_ANSWER,
  type Answer,
  type DecodedPacket,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  decode,
  encode,
} from "dns-packet";

/** Bytes of a question. */
const maxQuestionBytes = 512;

/** Questions in a second. Further ones are dropped; resolvers repeat them. */
export const maxQuestionsPerSecond = 100;

/** Concurrent connections; name service uses them rarely. */
const maxDnsConnections = 8;

/** Milliseconds for one question over TCP. */
const connectionMs = 5_000;

/** Seconds that an answer may be kept. It never changes while the sandbox lives. */
const ttlSeconds = 60;

const noError = 0;
const notImplemented = 4;
const noSuchName = 3;

/** The address of a name inside; undefined for one that is not allowed. */
export type AddressOf = (name: string) => string | undefined;

/** Answers questions until the sockets are closed. */
export function serveNames(
  udp: DatagramSocket,
  tcp: Server,
  addressOf: AddressOf,
  nowMs: () => number,
): void {
  const isAllowed = rateLimit(maxQuestionsPerSecond, nowMs);
  udp.on("message", (question, { port, address }) => {
    const answer = isAllowed() ? answerTo(question, addressOf) : undefined;
    if (answer !== undefined) udp.send(answer, port, address, () => undefined);
  });
  tcp.maxConnections = maxDnsConnections;
  tcp.on("connection", (socket) => {
    answerOnce(socket, (question) => (isAllowed() ? answerTo(question, addressOf) : undefined));
  });
}

/** The answer to a message; undefined for one that is no question. */
export function answerTo(message: Uint8Array, addressOf: AddressOf): Buffer | undefined {
  const packet = questionOf(message);
  const question = packet?.questions?.[0];
  if (packet === undefined || question === undefined) return undefined;
  const respond = (rcode: number, answers: Answer[] = []): Buffer =>
    encode({
      type: "response",
      id: packet.id ?? 0,
      flags:
        AUTHORITATIVE_ANSWER |
        RECURSION_AVAILABLE |
        (packet.flags === undefined ? 0 : packet.flags & RECURSION_DESIRED) |
        rcode,
      questions: [question],
      answers,
    });
  if (packet.questions?.length !== 1 || question.class !== "IN") return respond(notImplemented);
  const address = addressOf(question.name.toLowerCase().replace(/\.$/, ""));
  if (address === undefined) return respond(noSuchName);
  if (question.type !== "A") return respond(noError);
  return respond(noError, [{ type: "A", name: question.name, ttl: ttlSeconds, data: address }]);
}

function questionOf(message: Uint8Array): DecodedPacket | undefined {
  if (message.byteLength > maxQuestionBytes) return undefined;
  try {
    const packet = decode(Buffer.from(message));
    return packet.type === "query" ? packet : undefined;
  } catch {
    return undefined;
  }
}

/** One question of a connection, with its length in front: RFC 7766. */
function answerOnce(socket: Socket, answer: (question: Buffer) => Buffer | undefined): void {
  let received = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), connectionMs);
  socket.once("close", () => clearTimeout(timer));
  socket.once("end", () => socket.destroySoon());
  socket.on("error", () => undefined);
  socket.resume();
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    if (received.byteLength < 2) return;
    const length = received.readUInt16BE(0);
    if (length > maxQuestionBytes) return void socket.destroy();
    if (received.byteLength < 2 + length) return;
    const bytes = answer(received.subarray(2, 2 + length));
    if (bytes === undefined) return void socket.destroy();
    const prefix = Buffer.alloc(2);
    prefix.writeUInt16BE(bytes.byteLength);
    socket.end(Buffer.concat([prefix, bytes]));
  });
}

/** Whether the present second has room for another one. */
function rateLimit(perSecond: number, nowMs: () => number): () => boolean {
  let [second, count] = [0, 0];
  return () => {
    const now = Math.floor(nowMs() / 1_000);
    if (now !== second) [second, count] = [now, 0];
    return ++count <= perSecond;
  };
}
