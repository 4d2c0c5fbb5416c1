/**
 * A name server of a test, over UDP on loopback.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type Answer, type Question, decode, encode } from "dns-packet";
import { onTestFinished } from "vitest";

/** RFC 1035, section 4.1.1; dns-packet keeps it in the lowest bits of the flags. */
const noSuchName = 3;

/** Records by question, such as `A api.example.com`; no answer at all for `silent`. */
export type Zone = Readonly<Record<string, readonly Answer[] | "silent">>;

/** A running name server. Disposing ends it. */
export interface NameServer extends Disposable {
  /** Address and port, as `lookUpByHost` takes them. */
  readonly place: string;
  /** What it was asked for, as keys of its zone. */
  readonly questions: readonly string[];
  /** Fulfils with the next question. */
  asked(): Promise<unknown>;
}

/** {@link openNameServer}; it ends with the test. */
export async function startNameServer(zone: Zone): Promise<NameServer> {
  const server = await openNameServer(zone);
  onTestFinished(() => server[Symbol.dispose]());
  return server;
}

/** A name that has no record at all does not exist. What the zone has at a question counts. */
export async function openNameServer(zone: Zone): Promise<NameServer> {
  const socket = createSocket("udp4");
  const questions: string[] = [];
  const keyOf = ({ type, name }: Question): string => `${type} ${name.toLowerCase()}`;
  socket.on("message", (message, { port, address }) => {
    const { id = 0, questions: [question] = [] } = decode(message);
    if (question === undefined) return;
    questions.push(keyOf(question));
    const answers = zone[keyOf(question)] ?? [];
    if (answers === "silent") return;
    const names = Object.keys(zone).map((key) => key.split(" ")[1]);
    const flags = names.includes(question.name.toLowerCase()) ? 0 : noSuchName;
    const sections = { questions: [question], answers: [...answers] };
    socket.send(encode({ type: "response", id, flags, ...sections }), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const place = `127.0.0.1:${socket.address().port}`;
  return {
    ...{ place, questions },
    asked: () => once(socket, "message"),
    [Symbol.dispose]: () => void socket.close(),
  };
}
