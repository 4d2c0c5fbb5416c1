/**
 * The status pipe, with real processes at its other end.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, test, vi } from "vitest";
import { StatusPipe } from "../../../../worker/sandbox/work/status-channel.ts";
import { maxLineBytes } from "../../../../worker/sandbox/work/status-lines.ts";
import {
  descriptorsOf,
  openedSince,
  presentDescriptors,
  temporaryDirectory,
} from "../sandbox-host.ts";
import { patience } from "../../../support/patience.ts";

const run = promisify(execFile);

/** New pipes in a directory of their own. */
async function newPipes(count: number): Promise<string[]> {
  const directory = await temporaryDirectory();
  const paths = Array.from({ length: count }, (_, index) => join(directory, `${index}.pipe`));
  await run("mkfifo", paths);
  return paths;
}

/** A channel on a new pipe, with what it has told so far. */
async function openChannel() {
  const [path] = (await newPipes(1)) as [string];
  const statuses: string[] = [];
  const channel = (await StatusPipe.open(path)).read((status) => statuses.push(status));
  return { path, statuses, channel, [Symbol.dispose]: () => channel[Symbol.dispose]() };
}

/**
 * Runs a Python program that has the pipe's path as `pipe`; resolves with what it prints when it
 * has ended.
 */
async function python(path: string, program: string): Promise<string> {
  const child = spawn(
    "python3",
    ["-I", "-S", "-c", `import os, sys\npipe = sys.argv[1]\n${program}`, path],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const [printed] = await Promise.all([text(child.stdout), once(child, "exit")]);
  expect(child.exitCode).toBe(0);
  return printed;
}

/** Puts bytes into the pipe and ends, as one process. */
async function write(path: string, bytes: Uint8Array | string): Promise<void> {
  const child = spawn("sh", ["-c", 'exec cat > "$0"', path], {
    stdio: ["pipe", "inherit", "inherit"],
  });
  child.stdin.end(bytes);
  await once(child, "exit");
}

const line = (status: string): string => `${JSON.stringify({ status })}\n`;

describe("a status pipe", () => {
  test("tells what a shell writes into it, line by line", async () => {
    using pipe = await openChannel();
    await run("sh", [
      "-c",
      `echo '{"status": "one"}' > "$0"; echo '{"status":"two"}' > "$0"`,
      pipe.path,
    ]);
    await vi.waitFor(() => expect(pipe.statuses).toEqual(["one", "two"]), patience);
  });

  test("tells a status as soon as it is there, while the writer goes on", async () => {
    using pipe = await openChannel();
    const writer = spawn("sh", [
      "-c",
      `exec > "$0"; echo '{"status": "working"}'; read _`,
      pipe.path,
    ]);
    await vi.waitFor(() => expect(pipe.statuses).toEqual(["working"]), patience);
    expect(writer.exitCode).toBeNull();
    writer.stdin.end();
    await once(writer, "exit");
  });

  test("stays open for the next writer after the first has closed it", async () => {
    using pipe = await openChannel();
    for (const status of ["first", "second", "third"]) {
      await write(pipe.path, line(status));
      await vi.waitFor(() => expect(pipe.statuses.at(-1)).toBe(status), patience);
    }
  });

  test("puts a line together that comes in pieces", async () => {
    using pipe = await openChannel();
    await python(
      pipe.path,
      `
import time
with open(pipe, "wb", buffering=0) as status:
    for byte in '{"status": "in pieces, é too"}\\n'.encode():
        status.write(bytes([byte]))
        time.sleep(0.001)`,
    );
    pipe.channel.finish();
    expect(pipe.statuses).toEqual(["in pieces, é too"]);
  });

  test("can be opened by many writers at once, each line stays whole", async () => {
    using pipe = await openChannel();
    const writers = ["a", "b", "c"].map((name) =>
      python(
        pipe.path,
        `
with open(pipe, "wb", buffering=0) as status:
    for number in range(50):
        status.write(b'{"status": "${name} %d"}\\n' % number)`,
      ),
    );
    await Promise.all(writers);
    pipe.channel.finish();
    expect(pipe.channel.droppedLines).toBe(0);
    expect(pipe.statuses).toHaveLength(150);
    for (const name of ["a", "b", "c"]) {
      expect(pipe.statuses.filter((status) => status.startsWith(name))).toEqual(
        Array.from({ length: 50 }, (_, number) => `${name} ${number}`),
      );
    }
  });
});

describe("what is no status", () => {
  test.each([
    ["a plain line", "Loading input file...\n"],
    ["an empty line", "\n"],
    ["half an object", '{"status": "x"\n'],
    ["another object", '{"message": "a longer text"}\n'],
    ["a status that is no text", '{"status": 12345678}\n'],
    ["a list", '["status", "x", "y"]\n'],
    ["null", "null\n"],
    ["bytes that are no text", Buffer.from([...Array(255).keys(), 0xff, 0x0a])],
  ])("is dropped and counted, and what follows arrives: %s", async (_name, bytes) => {
    using pipe = await openChannel();
    await write(pipe.path, Buffer.concat([Buffer.from(bytes), Buffer.from(line("after"))]));
    pipe.channel.finish();
    expect(pipe.statuses).toEqual(["after"]);
    expect(pipe.channel.droppedLines).toBeGreaterThan(0);
  });

  test("is a line beyond 4096 bytes, which is dropped whole, wherever it is cut", async () => {
    const longest = line("x".repeat(maxLineBytes - '{"status":""}'.length));
    expect(longest).toHaveLength(maxLineBytes + 1);
    using pipe = await openChannel();
    await write(pipe.path, longest);
    await write(pipe.path, `x${longest}`);
    await write(pipe.path, `${"y".repeat(100_000)}${line("inside the long line")}${line("after")}`);
    pipe.channel.finish();
    expect(pipe.statuses).toEqual(["x".repeat(maxLineBytes - '{"status":""}'.length), "after"]);
    expect(pipe.channel.droppedLines).toBe(2);
  });

  test("is a last line without its end", async () => {
    using pipe = await openChannel();
    await write(pipe.path, `${line("whole")}{"status": "hal`);
    pipe.channel.finish();
    expect(pipe.statuses).toEqual(["whole"]);
  });
});

describe("the text of a status", () => {
  test.each([
    ["escape sequences", "a\u001b[31mred\u001b[0m", "a [31mred [0m"],
    ["line breaks of every kind", "a\r\nb\u2028c\u2029d\u0085e", "a  b c d e"],
    ["NUL and DEL", "a\u0000b\u007fc", "a b c"],
    [
      "overrides of direction",
      "a\u202etxt.exe\u202c \u2066x\u2069 \u200ey\u200f",
      "a txt.exe   x   y ",
    ],
    ["what nobody sees", "a\u061cb\u200bc\u{e0061}d\ufeffe", "a b c d e"],
    ["half a character", "a\ud83d b", "a\ufffd b"],
  ])("loses %s", async (_name, status, expected) => {
    using pipe = await openChannel();
    await write(pipe.path, line(status));
    pipe.channel.finish();
    expect(pipe.statuses).toEqual([expected]);
  });

  test("keeps what is text in any script", async () => {
    const status = 'Größe: 年 🧪 👩\u200d🔬 ❤\ufe0f می\u200cخواهم — "quoted" \\ <b>&amp;';
    using pipe = await openChannel();
    await write(pipe.path, line(status));
    pipe.channel.finish();
    expect(pipe.statuses).toEqual([status]);
  });
});

describe("a writer that floods the pipe", () => {
  const floodSeconds = 2;
  const turnBytes = 16 * 1024;
  const pipeBytes = 64 * 1024;

  /** Writes as fast as the reader lets it; resolves with the number of bytes. */
  async function flood(path: string): Promise<number> {
    const written = await python(
      path,
      `
import time
lines = b'{"status": "flood"}\\n' * 3000
end = time.monotonic() + ${floodSeconds}
written = 0
status = os.open(pipe, os.O_WRONLY)
while time.monotonic() < end:
    written += os.write(status, lines)
print(written)`,
    );
    return Number(written);
  }

  test("is slowed down, while everything else goes on", { tags: "full" }, async () => {
    using pipe = await openChannel();
    let isOver = false;
    const flooding = flood(pipe.path).finally(() => (isOver = true));
    let mostInOneTurn = 0;
    for (let before = 0; !isOver; before = pipe.statuses.length) {
      await nextTurn();
      mostInOneTurn = Math.max(mostInOneTurn, pipe.statuses.length - before);
    }
    const writtenBytes = await flooding;
    pipe.channel.finish();
    expect(new Set(pipe.statuses)).toEqual(new Set(["flood"]));
    // Unhindered it is hundreds of MB. The last write may still wait for all of it to be read.
    const turns = (floodSeconds * 1000) / 12;
    expect(writtenBytes).toBeLessThan(2 * (turns * turnBytes + pipeBytes));
    // One of the pipe, and one that was held back for a line's end.
    expect(mostInOneTurn * line("flood").length).toBeLessThanOrEqual(2 * turnBytes);
  });

  test("is slowed down more when others do so as well", { tags: "full" }, async () => {
    using pipes = new DisposableStack();
    const opened = [];
    for (let n = 1; n <= 8; n++) opened.push(pipes.use(await openChannel()));
    const written = await Promise.all(opened.map(({ path }) => flood(path)));
    const writtenBytes = written.reduce((sum, bytes) => sum + bytes, 0);
    const turns = (floodSeconds * 1000) / 4;
    // Each for itself they would come to three times as much.
    expect(writtenBytes).toBeLessThan(1.5 * turns * turnBytes + opened.length * 2 * pipeBytes);
    for (const { channel, statuses } of opened) {
      channel.finish();
      expect(statuses.length).toBeGreaterThan(0);
    }
  });

  test("loses no line at its end, also where the event loop has had a turn", async () => {
    using pipe = await openChannel();
    const lines = 40;
    await python(
      pipe.path,
      `
with open(pipe, "wb", buffering=0) as status:
    status.write((b'{"status": "' + b"x" * 1000 + b'"}\\n') * ${lines})`,
    );
    await vi.waitUntil(() => pipe.statuses.length > 0, { interval: 1 });
    await nextTurn();
    await nextTurn();
    pipe.channel.finish(true);
    expect(pipe.statuses).toHaveLength(lines);
  });

  test("with one endless line costs no memory", { tags: "promise-O4" }, async () => {
    using pipe = await openChannel();
    const before = process.memoryUsage().rss;
    await python(
      pipe.path,
      `
with open(pipe, "wb", buffering=0) as status:
    for _ in range(40):
        status.write(b"x" * 65536)
    status.write(b'\\n{"status": "after"}\\n')`,
    );
    pipe.channel.finish();
    expect(pipe.statuses).toEqual(["after"]);
    expect(pipe.channel.droppedLines).toBe(1);
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  });

  test("and ends has every line told once and in order, also what the reader held back", async () => {
    using pipe = await openChannel();
    const count = 20_000;
    await python(
      pipe.path,
      `
lines = b"".join(b'{"status": "%d"}\\n' % number for number in range(${count}))
with open(pipe, "wb", buffering=0) as status:
    written = 0
    while written < len(lines):
        written += status.write(lines[written:])`,
    );
    pipe.channel.finish();
    expect(pipe.statuses).toHaveLength(count);
    expect(pipe.statuses).toEqual(Array.from({ length: count }, (_, number) => String(number)));
    expect(pipe.channel.droppedLines).toBe(0);
  });
});

describe("a bound on all that is written", () => {
  /** A channel with a bound, and what was told of it. */
  async function openBounded(maxBytes: number) {
    const pipe = await openChannel();
    const told: number[] = [];
    pipe.channel.bound(maxBytes, (readBytes) => told.push(readBytes));
    return { ...pipe, told };
  }

  test(
    "is told of once, with what was read, and nothing beyond it arrives",
    { tags: "promise-O4" },
    async () => {
      using pipe = await openBounded(10 * line("12345").length);
      const writer = spawn("sh", ["-c", `yes '${line("12345").trim()}' > "$0"`, pipe.path]);
      await vi.waitFor(() => expect(pipe.told).toHaveLength(1), patience);
      expect(pipe.statuses).toEqual(Array.from({ length: 10 }, () => "12345"));
      expect(pipe.told[0]).toBeGreaterThan(10 * line("12345").length);
      // Nobody reads any more, so it would write for ever into a pipe that is full.
      expect(writer.exitCode).toBeNull();
      writer.kill();
      await once(writer, "exit");
      pipe.channel.finish();
      expect(pipe.statuses).toHaveLength(10);
      expect(pipe.told).toHaveLength(1);
    },
  );

  test("counts bytes that are no status as well", async () => {
    using pipe = await openBounded(1_000);
    await write(pipe.path, "x".repeat(1_001));
    pipe.channel.finish();
    expect(pipe.told).toEqual([1_001]);
    expect(pipe.statuses).toEqual([]);
  });

  test("leaves alone what is just within it, also in what is read at the end", async () => {
    using pipe = await openBounded(100 * line("12345").length);
    await write(pipe.path, line("12345").repeat(100));
    pipe.channel.finish();
    expect(pipe.told).toEqual([]);
    expect(pipe.statuses).toHaveLength(100);
  });
});

describe("the end of a call", () => {
  const losesNothing = "loses nothing of a writer that ends at once, in %d calls";
  test.for([20])(losesNothing, expectNothingLost);
  test.for([200])(losesNothing, { tags: "full" }, expectNothingLost);

  async function expectNothingLost(calls: number): Promise<void> {
    const expected = ["starting", "working", "done"];
    const lines = expected.map(line).join("");
    for (const path of await newPipes(calls)) {
      const statuses: string[] = [];
      using channel = (await StatusPipe.open(path)).read((status) => statuses.push(status));
      const writer = spawn("sh", ["-c", 'printf %s "$1" > "$0"', path, lines], { stdio: "ignore" });
      await once(writer, "exit");
      channel.finish();
      expect(statuses).toEqual(expected);
    }
  }

  test("brings what fills the pipe to its brim", async () => {
    using pipe = await openChannel();
    const status = "x".repeat(1_000);
    const count = Math.floor((64 * 1024) / line(status).length);
    await write(pipe.path, line(status).repeat(count));
    pipe.channel.finish();
    expect(pipe.statuses).toHaveLength(count);
  });

  test("of which nobody has written anything waits for nobody", async () => {
    using pipe = await openChannel();
    pipe.channel.finish();
    expect(pipe.statuses).toEqual([]);
    expect(pipe.channel.droppedLines).toBe(0);
  });

  test("may come twice, and after the channel was given back", async () => {
    const pipe = await openChannel();
    await write(pipe.path, line("once"));
    pipe.channel.finish();
    pipe.channel.finish();
    pipe.channel[Symbol.dispose]();
    pipe.channel.finish();
    pipe.channel[Symbol.dispose]();
    expect(pipe.statuses).toEqual(["once"]);
  });
});

describe("a channel that is given back", () => {
  test("closes the pipe", async () => {
    const before = await presentDescriptors();
    const pipe = await openChannel();
    expect(await descriptorsOf(pipe.path)).toHaveLength(1);
    pipe.channel[Symbol.dispose]();
    await vi.waitFor(async () => expect(await descriptorsOf(pipe.path)).toEqual([]), patience);
    expect(await openedSince(before)).toEqual([]);
  });

  test("in the middle of a flood closes the pipe and tells nothing more", async () => {
    const pipe = await openChannel();
    const writer = spawn("sh", ["-c", `yes '{"status": "flood"}' > "$0"`, pipe.path]);
    await vi.waitFor(() => expect(pipe.statuses.length).toBeGreaterThan(1_000), patience);
    pipe.channel[Symbol.dispose]();
    const told = pipe.statuses.length;
    // The writer's pipe breaks.
    await once(writer, "exit");
    await vi.waitFor(async () => expect(await descriptorsOf(pipe.path)).toEqual([]), patience);
    // What was read before would come in this turn.
    await nextTurn();
    expect(pipe.statuses).toHaveLength(told);
  });
});

describe("a path where no pipe is", () => {
  test("is refused when there is nothing", async () => {
    const directory = await temporaryDirectory();
    await expect(StatusPipe.open(join(directory, "status.pipe"))).rejects.toThrow(
      expect.objectContaining({ code: "ENOENT" }),
    );
  });

  test("is refused when there is a link, whatever it leads to", async () => {
    const [path] = (await newPipes(1)) as [string];
    const link = `${path}.link`;
    await symlink(path, link);
    await expect(StatusPipe.open(link)).rejects.toThrow(expect.objectContaining({ code: "ELOOP" }));
  });

  test("is refused when there is a file", async () => {
    const path = join(await temporaryDirectory(), "status.pipe");
    await writeFile(path, line("not from a pipe"));
    await expect(StatusPipe.open(path)).rejects.toThrow();
    expect(await descriptorsOf(path)).toEqual([]);
  });
});
