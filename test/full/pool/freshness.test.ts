/**
 * No call runs old code: tools are called as fast as they answer while their code, or their entry,
 * is exchanged again and again.
 *
 * What is exchanged bears a number, and a call answers with the one that it found. Two lines of the
 * log, one after the other, each say that a change was seen; the second was looked for after the
 * first was written. So once the second is there, a call that begins answers with no number lower
 * than the one that was in place before the first.
 *
 * @module-tag full
 */
import { rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type Rig, type RigTool, manifestText, startRig } from "../../support/workers/rig.ts";
import { patience } from "../../support/patience.ts";

/** A worker's pause between two polls is a multiple of a poll, and a line needs two of them. */
const watchPatience = { ...patience, timeout: 60_000 };

/** Calls at once. */
const callers = 3;
/** Times that the code is exchanged in a row, and comes to rest. */
const rounds = 2;
/**
 * Milliseconds after each exchange of a row but the last: sooner than anybody looks, while somebody
 * looks, and later.
 */
const pausesMs = [0, 20, 120, 40, 250];
/**
 * A row with its last one, and one while nobody calls; odd, so that two things that are exchanged
 * in turn take turns here, too.
 */
const exchangesPerRound = pausesMs.length + 2;

const lineSchema = z.object({
  time: z.string(),
  event: z.string(),
  version: z.unknown().optional(),
});
const responseSchema = z.object({
  result: z.object({ execution: z.object({ start: z.enum(["cold", "pool", "template"]) }) }),
});

/** What is called, and what of it is exchanged. */
interface Subject {
  readonly tool: string;
  /** What the worker says when it has seen a change. */
  readonly saying: string;
  /** How often it says so of one change. */
  readonly lines: number;
  /** Puts a number in place, at once. */
  put(number: number): Promise<void>;
}

interface Answered {
  readonly number: number;
  readonly start: "cold" | "pool" | "template";
}

/**
 * The numbers that were in place, and the least that a call which begins now may answer with. They
 * begin with 0.
 */
class Numbers {
  readonly #rig: Rig;
  readonly #subject: Subject;
  /** When each number but the first was in place, in epoch milliseconds. */
  readonly #inPlaceMs: number[] = [];
  /** When the worker said that it had seen a change, in epoch milliseconds. */
  readonly #saidMs: number[] = [];
  #linesRead = 0;
  /** The number that is in place, or will be in a moment. */
  begun = 0;

  constructor(rig: Rig, subject: Subject) {
    this.#rig = rig;
    this.#subject = subject;
  }

  async exchange(): Promise<void> {
    await this.#subject.put(++this.begun);
    this.#inPlaceMs.push(Date.now());
  }

  /** Fulfils when the worker has said all that it says of this change. */
  async exchangeUntilSaid(): Promise<void> {
    const before = this.#timesSaid;
    await this.exchange();
    const { lines } = this.#subject;
    await expect.poll(() => this.#timesSaid, watchPatience).toBeGreaterThanOrEqual(before + lines);
  }

  get least(): number {
    this.#read();
    const beforeLastMs = this.#saidMs.at(-2) ?? 0;
    return this.#inPlaceMs.filter((ms) => ms < beforeLastMs).length;
  }

  get #timesSaid(): number {
    this.#read();
    return this.#saidMs.length;
  }

  #read(): void {
    for (const text of this.#rig.logLines.slice(this.#linesRead)) {
      this.#linesRead++;
      const { event, time } = lineSchema.parse(JSON.parse(text));
      if (event === this.#subject.saying) this.#saidMs.push(Date.parse(time));
    }
  }
}

/**
 * Calls without a pause, but for those that are ordered, and compares each answer with what it must
 * be at least.
 */
class Callers implements AsyncDisposable {
  readonly answers: Answered[] = [];
  readonly #rig: Rig;
  readonly #tool: string;
  readonly #numbers: Numbers;
  #isOver = false;
  #calling: Promise<unknown> = Promise.resolve();

  constructor(rig: Rig, tool: string, numbers: Numbers) {
    this.#rig = rig;
    this.#tool = tool;
    this.#numbers = numbers;
  }

  start(): void {
    this.#isOver = false;
    this.#calling = Promise.all(Array.from({ length: callers }, () => this.#call()));
    // Rejects for who waits next.
    this.#calling.catch(() => (this.#isOver = true));
  }

  /**
   * Fulfils when so many more answers have come. Rejects when an answer was wrong, or they do not
   * come.
   */
  async answersMore(count: number): Promise<void> {
    const enough = this.answers.length + count;
    await this.until(() => this.answers.length >= enough);
  }

  /**
   * Fulfils when something is so. Rejects when an answer was wrong, or when it does not come to be
   * so.
   */
  async until(isSo: () => boolean): Promise<void> {
    await vi.waitUntil(() => this.#isOver || isSo(), patience);
    if (this.#isOver) await this.#calling;
  }

  /** Fulfils when no call is under way. Rejects when an answer was wrong. */
  async pause(): Promise<void> {
    this.#isOver = true;
    await this.#calling;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#calling.catch(() => undefined);
  }

  async #call(): Promise<void> {
    while (!this.#isOver) {
      const { least } = this.#numbers;
      const result = await this.#rig.call(this.#tool);
      if (result.kind !== "success") throw new Error(JSON.stringify(result));
      const number = Number(result.toolResult["number"]);
      const { start } = responseSchema.parse(result.response).result.execution;
      expect(number, `answered by a ${start} start`).toBeGreaterThanOrEqual(least);
      expect(number, `answered by a ${start} start`).toBeLessThanOrEqual(this.#numbers.begun);
      this.answers.push({ number, start });
    }
  }
}

/**
 * Exchanges a number again and again: while it is called; and while sandboxes wait and nobody
 * calls, so that the old ones are there still when the calls begin. Each time it comes to rest, and
 * is served by one that waited.
 */
async function exchange(rig: Rig, subject: Subject, start: Answered["start"]): Promise<void> {
  const numbers = new Numbers(rig, subject);
  await using calls = new Callers(rig, subject.tool, numbers);
  const isServed = (): boolean =>
    calls.answers.some((answer) => answer.number === numbers.begun && answer.start === start);
  for (let round = 0; round < rounds; round++) {
    calls.start();
    for (const pauseMs of pausesMs) {
      await numbers.exchange();
      await sleep(pauseMs);
    }
    await numbers.exchangeUntilSaid();
    await calls.answersMore(callers);
    await calls.pause();
    await rig.untilWaiting(subject.tool, warm.min);
    await numbers.exchangeUntilSaid();
    calls.start();
    await calls.answersMore(callers);
    await calls.pause();
    // Refills stand back for calls without a gap.
    await rig.untilWaiting(subject.tool, warm.min);
    calls.start();
    await calls.until(isServed);
    await calls.pause();
  }
}

/** Replaces a file, so that nobody finds a half of it. */
async function replace(rig: Rig, path: string, text: string): Promise<void> {
  const next = join(dirname(rig.toolsDir), "next");
  await writeFile(next, text);
  await rename(next, path);
}

/**
 * Beside the tools, what their modules and packages are. Each of the two has a number, and a tool
 * tells the greater.
 */
interface Language {
  readonly name: string;
  readonly tool: RigTool;
  readonly starts: readonly ("pool" | "template")[];
  /** By path below the directory of tools. */
  readonly files: Readonly<Record<string, string>>;
  /** The files that have the numbers, by path, and their text. */
  readonly numbered: readonly (readonly [path: string, text: (number: number) => string])[];
}

const pythonModule = (number: number): string => `
from numbers_package.deep import present
NUMBER = ${number}

def tell(ctx):
    return {'number': max(NUMBER, present.NUMBER)}
`;
const pythonPackage = (number: number): string => `NUMBER = ${number}\n`;
const python: Language = {
  name: "Python",
  tool: { module: "telling", function: "tell" },
  starts: ["pool", "template"],
  files: {
    "telling.py": pythonModule(0),
    "numbers_package/__init__.py": "",
    "numbers_package/deep/__init__.py": "",
    "numbers_package/deep/present.py": pythonPackage(0),
  },
  numbered: [
    ["telling.py", pythonModule],
    ["numbers_package/deep/present.py", pythonPackage],
  ],
};

const nodeModule = (number: number): string => `
import * as present from "numbers-package";
export const tell = () => ({ number: Math.max(${number}, present.number) });
`;
const nodePackage = (number: number): string => `export const number = ${number};\n`;
const node: Language = {
  name: "Node",
  tool: { runtime: "node", module: "telling.js", function: "tell" },
  starts: ["pool"],
  files: {
    "telling.js": nodeModule(0),
    "node_modules/numbers-package/package.json": JSON.stringify({
      name: "numbers-package",
      type: "module",
      exports: "./deep/present.js",
    }),
    "node_modules/numbers-package/deep/present.js": nodePackage(0),
  },
  numbered: [
    ["telling.js", nodeModule],
    ["node_modules/numbers-package/deep/present.js", nodePackage],
  ],
};

const saying = "code.changed";
const warm = { min: 2, max: 4 };
const cases = [python, node].flatMap((language) =>
  language.starts.map((start) => ({ language, start })),
);

describe(
  "once a change is told, no call that begins runs what was there before",
  { tags: "promise-W5" },
  () => {
    test.each(cases)(
      "when a $language.name module and a file of its package are exchanged in turn, with start $start",
      async ({ language: { tool, files, numbered }, start }) => {
        const isNode = tool.runtime === "node";
        await using rig = await startRig({
          tools: { telling: { ...tool, start, warm } },
          ...(isNode ? { nodeFiles: files } : { files }),
          isWarm: true,
        });
        const directory = isNode ? rig.nodeToolsDir : rig.toolsDir;
        await rig.untilWaiting("telling");
        const put = (number: number): Promise<void> => {
          const [path, text] = numbered[number % numbered.length]!;
          return replace(rig, join(directory, path), text(number));
        };
        await exchange(rig, { tool: "telling", saying, lines: 2, put }, start);
      },
    );

    test.each(["pool", "template"] as const)(
      "when the entry of a tool gets another function, with start %s",
      async (start) => {
        const functions = Array.from(
          { length: rounds * exchangesPerRound + 1 },
          (_, number) => `def tell_${number}():\n    return {"number": ${number}}\n`,
        );
        const manifest = (number: number) => ({
          telling: { module: "many", function: `tell_${number}`, start, warm },
        });
        await using rig = await startRig({
          tools: manifest(0),
          files: { "many.py": functions.join("\n\n") },
          isWarm: true,
        });
        await rig.untilWaiting("telling");
        const put = (number: number) =>
          replace(rig, rig.manifestPath, manifestText(manifest(number)));
        await exchange(rig, { tool: "telling", saying: "manifest.loaded", lines: 1, put }, start);
      },
    );
  },
);

describe("an operator who exchanges code is told when every call has it", () => {
  test("and it is so, for each start there is", async () => {
    const tool = { module: "telling", function: "tell", warm };
    await using rig = await startRig({
      tools: {
        cold: { ...tool, start: "cold" },
        pool: { ...tool, start: "pool" },
        template: { ...tool, start: "template" },
      },
      files: python.files,
      isWarm: true,
    });
    const notice = "code.in_force";
    for (const number of [1, 2, 3]) {
      await Promise.all(["pool", "template"].map((name) => rig.untilWaiting(name)));
      const before = versionsIn(rig, saying).length;
      await replace(rig, join(rig.toolsDir, "telling.py"), pythonModule(number));
      // The first may tell of what was before, as of the files of a worker that has just started.
      await expect.poll(() => versionsIn(rig, saying)[before + 1], watchPatience).toBeDefined();
      const version = versionsIn(rig, saying)[before + 1] ?? Infinity;
      await expect
        .poll(() => versionsIn(rig, notice).at(-1), watchPatience)
        .toBeGreaterThanOrEqual(version);
      const results = await Promise.all(["cold", "pool", "template"].map((name) => rig.call(name)));
      for (const result of results) expect(result).toMatchObject({ toolResult: { number } });
    }
  });
});

/** The versions of the code that lines of the log tell of, in order. */
function versionsIn(rig: Rig, saying: string): readonly number[] {
  return rig.logLines
    .map((line) => lineSchema.parse(JSON.parse(line)))
    .flatMap(({ event, version }) =>
      event === saying && typeof version === "number" ? [version] : [],
    );
}
