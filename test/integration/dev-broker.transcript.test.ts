/**
 * Plays what clients said to the original DevBroker to ours, and compares every answer with the
 * original's.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type Socket, connect } from "node:net";
import { describe, expect, test } from "vitest";
import { startDevBroker } from "../../harness/dev-broker/dev-broker.ts";
import { maxAnswerBytes } from "../../worker/broker/dev/wire.ts";
import { LineSplitter } from "../../worker/support/text/byte-lines.ts";

interface Entry {
  readonly scene: string;
  readonly conn: string;
  readonly dir: "c>s" | "s>c";
  readonly line: string;
}

const entries = readFileSync(
  new URL("../fixtures/devbroker-transcript.jsonl", import.meta.url),
  "utf8",
)
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Entry);

const endOfConnection = "<EOF>";
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * Where we deviate from the original on purpose: what is wrong with a line that is not JSON is said
 * in our words, not in those of Python's decoder. The code is the same.
 */
const pythonDecoderWords = /^Expecting value: /;

/** A client that only repeats what was recorded. */
class ReplayedClient {
  readonly #socket: Socket;
  readonly #answers: string[] = [];
  #arrived = Promise.withResolvers<void>();

  constructor(port: number) {
    this.#socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const splitter = new LineSplitter(maxAnswerBytes);
    const arrive = (answer: string): void => {
      this.#answers.push(answer);
      this.#arrived.resolve();
      this.#arrived = Promise.withResolvers();
    };
    this.#socket.on("data", (chunk) => {
      for (const line of splitter.push(chunk)) {
        arrive(line.kind === "line" ? line.bytes.toString() : line.kind);
      }
    });
    this.#socket.on("end", () => arrive(endOfConnection));
  }

  say(line: string): void {
    if (line === endOfConnection) this.#socket.end();
    // The recorder wrote bytes that are not UTF-8 as escapes.
    else if (line === String.raw`\xff\xfe`) this.#socket.write(Buffer.from([0xff, 0xfe, 0x0a]));
    else this.#socket.write(`${line}\n`);
  }

  async hear(): Promise<string> {
    for (;;) {
      const answer = this.#answers.shift();
      if (answer !== undefined) return answer;
      await this.#arrived.promise;
    }
  }

  async close(): Promise<void> {
    this.#socket.destroy();
    if (!this.#socket.closed) await once(this.#socket, "close");
  }
}

/** An answer with the parts that are random on both sides named instead of shown. */
function normalised(line: string): unknown {
  if (line === endOfConnection) return line;
  return JSON.parse(line, (key, value: unknown) => {
    if (typeof value !== "string") return value;
    if ((key === "message_id" || key === "client_id") && uuid.test(value)) return "a uuid4";
    if (key === "error_message" && pythonDecoderWords.test(value)) return "bad JSON";
    if (key === "error_message" && value.startsWith("not valid JSON")) return "bad JSON";
    return value;
  });
}

/**
 * The entries in an order in which cause comes before effect: the recorder's two directions ran
 * separately, and now and then it wrote an answer down before the line that it answers.
 */
function causal(recorded: readonly Entry[]): Entry[] {
  const ordered: Entry[] = [];
  const unanswered = new Map<string, number>();
  const early: Entry[] = [];
  for (const entry of recorded) {
    const open = unanswered.get(entry.conn) ?? 0;
    if (entry.dir === "c>s") {
      ordered.push(entry);
      const index = early.findIndex((answer) => answer.conn === entry.conn);
      if (index === -1) unanswered.set(entry.conn, open + 1);
      else ordered.push(...early.splice(index, 1));
    } else if (open === 0 && hasLaterWords(recorded, entry)) {
      early.push(entry);
    } else {
      ordered.push(entry);
      unanswered.set(entry.conn, Math.max(0, open - 1));
    }
  }
  expect(early).toEqual([]);
  return ordered;
}

/** Whether the client still says something after this entry that is not its own goodbye. */
function hasLaterWords(recorded: readonly Entry[], entry: Entry): boolean {
  return recorded
    .slice(recorded.indexOf(entry))
    .some(
      (later) => later.conn === entry.conn && later.dir === "c>s" && later.line !== endOfConnection,
    );
}

describe("the DevBroker answers like the original", () => {
  test("in every recorded scene, over real sockets", { tags: "full" }, async () => {
    await using broker = await startDevBroker();
    const clients = new Map<string, ReplayedClient>();
    let compared = 0;
    // Connections live across scenes, so the scenes are one play.
    for (const { scene, conn, dir, line } of causal(entries)) {
      let client = clients.get(conn);
      if (client === undefined) clients.set(conn, (client = new ReplayedClient(broker.port)));
      if (dir === "c>s") {
        client.say(line);
      } else {
        expect(normalised(await client.hear()), `${scene}, ${conn}`).toEqual(normalised(line));
        compared++;
      }
    }
    expect(compared).toBe(entries.filter((entry) => entry.dir === "s>c").length);
    await Promise.all([...clients.values()].map((client) => client.close()));
  });

  test("the scenes are the ones we know of", () => {
    expect([...new Set(entries.map((entry) => entry.scene))]).toEqual([
      "str-exchange",
      "dynamic-subscribe",
      "bytes-payload",
      "same-queue-two-clients",
      "overlapping-patterns",
      "defaults-errors",
      "receive-corners",
      "wildcards",
      "same-client-id-race",
      "lost-on-disconnect",
    ]);
  });
});
