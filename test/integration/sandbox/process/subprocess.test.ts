/**
 * One child process: what it is given, what is kept of it, and how its end is told.
 */
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { signalQuietly } from "../../../../worker/sandbox/proc/processes.ts";
import {
  type Subprocess,
  type SubprocessOptions,
  killWithChildren,
  maxOutputBytes,
  startSubprocess,
} from "../../../../worker/sandbox/subprocess.ts";
import { openedSince, presentDescriptors, processesWith, requireRoot } from "../sandbox-host.ts";
import { patience } from "../../../support/patience.ts";

/** Starts a shell script; the child is closed after the test. */
async function startScript(
  script: string,
  options: Partial<SubprocessOptions> = {},
): Promise<Subprocess> {
  const child = await startSubprocess({
    file: "/bin/sh",
    argv: ["-c", script],
    env: { PATH: "/usr/bin" },
    ...options,
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
    child.close();
  });
  return child;
}

/** Runs a shell script to its end and gives what it printed. */
async function run(script: string, options: Partial<SubprocessOptions> = {}) {
  const child = await startScript(script, options);
  const exit = await child.exited;
  await child.closed;
  return { exit, ...child.output() };
}

describe("the end of a child", () => {
  test("is its exit code", async () => {
    expect((await run("exit 3")).exit).toEqual({ exitCode: 3, signal: undefined });
  });

  test("is the signal that ended it", async () => {
    const child = await startScript("sleep 60");
    child.kill("SIGTERM");
    expect(await child.exited).toEqual({ exitCode: undefined, signal: "SIGTERM" });
  });

  test("makes further signals harmless", async () => {
    const child = await startScript("exit 0");
    await child.exited;
    child.kill("SIGKILL");
    expect(await child.exited).toEqual({ exitCode: 0, signal: undefined });
  });

  test("is told while something else still holds its output open; closing lets go of that", async () => {
    const before = await presentDescriptors();
    const marker = `86400.${Math.floor(Math.random() * 1e9)}`;
    const child = await startScript(`sleep ${marker} & echo started`);
    await child.exited;
    let isClosed = false;
    void child.closed.then(() => (isClosed = true));
    await vi.waitFor(() => expect(child.output().stdout.text).toBe("started\n"), patience);
    expect(isClosed).toBe(false);
    child.close();
    await child.closed;
    expect(await openedSince(before)).toEqual([]);
    for (const pid of await processesWith(marker)) process.kill(pid, "SIGKILL");
  });

  test.each([
    ["that does not exist", "/no/such/program", "ENOENT"],
    ["that is not executable", fileURLToPath(import.meta.url), "EACCES"],
    ["that is a directory", "/usr", "EACCES"],
  ])("of a program %s is a failure to start", async (_name, file, code) => {
    const starting = startSubprocess({ file, argv: [], env: {} });
    await expect(starting).rejects.toThrow(expect.objectContaining({ code }));
  });

  test("is a failure to start, which leaves nothing open, in 20 runs", async () => {
    const before = await presentDescriptors();
    const program = { file: "/no/such/program", argv: [], env: {} };
    const options = { ...program, inputs: ["x"], hasReport: true, socketFd: 9 };
    for (let runNumber = 0; runNumber < 20; runNumber++) {
      await expect(startSubprocess(options)).rejects.toThrow("ENOENT");
    }
    await vi.waitFor(async () => expect(await openedSince(before)).toEqual([]), patience);
  });
});

describe("a child", () => {
  test("has the environment it is given, and nothing of the worker's", async () => {
    vi.stubEnv("WORKER_SECRET", "hunter2");
    onTestFinished(() => void vi.unstubAllEnvs());
    const { stdout } = await run("tr '\\0' '\\n' < /proc/$$/environ", {
      env: { PATH: "/usr/bin" },
    });
    expect(stdout.text).toBe("PATH=/usr/bin\n");
  });

  test("has no input, and the root as its directory", async () => {
    const { stdout } = await run("readlink /proc/$$/fd/0 /proc/$$/cwd; cat");
    expect(stdout.text).toBe("/dev/null\n/\n");
  });

  test("is in a session of its own, where a terminal's Ctrl-C does not reach it", async () => {
    const child = await startScript("sleep 60");
    const stat = await readFile(`/proc/${child.pid}/stat`, "utf8");
    const [, , group, session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    expect([group, session].map(Number)).toEqual([child.pid, child.pid]);
  });

  test("runs as another user without any of the worker's groups", async (context) => {
    requireRoot(context);
    const { stdout } = await run("id -u; id -g; id -G", { uid: 60_004 });
    expect(stdout.text).toBe("60004\n60004\n60004\n");
  });
});

describe("the output of a child", () => {
  test("is kept by stream, as far as it has come", async () => {
    const child = await startScript("echo out; echo err >&2; sleep 60");
    await vi.waitFor(
      () =>
        expect(child.output()).toEqual({
          stdout: { text: "out\n", droppedBytes: 0 },
          stderr: { text: "err\n", droppedBytes: 0 },
        }),
      patience,
    );
  });

  test("is kept to the byte that the cap says, and the rest is counted", async () => {
    const exact = await run(`head -c ${maxOutputBytes} /dev/zero`);
    expect(exact.stdout.text).toHaveLength(maxOutputBytes);
    expect(exact.stdout.droppedBytes).toBe(0);
    const over = await run(`head -c ${maxOutputBytes + 1} /dev/zero >&2`);
    expect(over.stderr.text).toHaveLength(maxOutputBytes);
    expect(over.stderr.droppedBytes).toBe(1);
  });

  test("takes no memory beyond the cap", { tags: "full" }, async () => {
    const before = process.memoryUsage().rss;
    const { stdout } = await run("head -c 300000000 /dev/zero");
    expect(stdout.droppedBytes).toBe(300_000_000 - maxOutputBytes);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  });
});

describe("the descriptors of a child", () => {
  test("bring it its inputs, each with an end", async () => {
    const { stdout } = await run("cat <&3; echo; cat <&4", { inputs: ["first", "second"] });
    expect(stdout.text).toBe("first\nsecond");
  });

  test("bring inputs larger than a pipe holds", async () => {
    const input = "0123456789".repeat(200_000);
    const { stdout } = await run("cat <&3 | wc -c", { inputs: [input] });
    expect(Number(stdout.text)).toBe(2_000_000);
  });

  test("may be left unread: a child that ends without its input ends all the same", async () => {
    const { exit } = await run("exit 5", { inputs: ["x".repeat(2_000_000)], hasReport: true });
    expect(exit.exitCode).toBe(5);
  });

  test("bring its report back, apart from its output", async () => {
    const child = await startScript("cat <&3 >&4; echo output", {
      inputs: ["report"],
      hasReport: true,
    });
    expect(await text(child.report!)).toBe("report");
    await child.closed;
    expect(child.output().stdout.text).toBe("output\n");
  });

  test("are no more than it is given", async () => {
    const seen = async (options: Partial<SubprocessOptions>) => {
      const { stdout } = await run("exec ls /proc/self/fd", options);
      const descriptors = stdout.text.trim().split("\n").map(Number);
      // The last one is the listing's own; a test runner may have been started with some far above.
      return descriptors.filter((descriptor) => descriptor < 10).slice(0, -1);
    };
    expect(await seen({})).toEqual([0, 1, 2]);
    expect(await seen({ inputs: ["a", "b"], hasReport: true })).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test("are closed on our side when the child was closed, in 20 runs", async () => {
    const before = await presentDescriptors();
    for (let runNumber = 0; runNumber < 20; runNumber++) {
      const child = await startScript("cat <&3 >&4", { inputs: ["x"], hasReport: true });
      await child.exited;
      child.close();
      await child.closed;
    }
    await vi.waitFor(async () => expect(await openedSince(before)).toEqual([]), patience);
  });
});

describe("a child that is killed with its children", () => {
  test(
    "leaves none behind, also of those that it was about to start",
    { tags: "full" },
    async () => {
      const word = `61${process.pid}`;
      onTestFinished(async () => {
        for (const pid of await processesWith(`sleep\0${word}`)) signalQuietly(pid, "SIGKILL");
      });
      const isStill = async () => (await processesWith(`sleep\0${word}`)).length;
      for (let round = 0; round < 4; round++) {
        // The next one is always about to be born, up to a number that this machine bears.
        const child = await startScript(
          `left=300; while [ $left -gt 0 ]; do sleep ${word} & left=$((left - 1)); done; wait`,
        );
        await vi.waitFor(async () => expect(await isStill()).toBeGreaterThan(3), patience);
        killWithChildren(child);
        await child.exited;
        await vi.waitFor(async () => expect(await isStill()).toBe(0), patience);
      }
    },
  );
});
