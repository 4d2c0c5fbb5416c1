/**
 * `--park`: a Python runner that loads its tool before there is a call. What it does with the call:
 * parked-as-cold.test.ts.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { CallEnd } from "../../../../worker/sandbox/bubblewrap/idle/call-end.ts";
import { inheritableDescriptors } from "../../../../worker/support/inherited-descriptors.ts";
import {
  type RunOptions,
  type ToolRun,
  callOf,
  channelFd,
  policyOf,
  python,
  removeWorkDirs,
  runToolWith,
  runnerDir,
  runnerEntry,
  startParked,
} from "../run-tool.ts";

afterAll(removeWorkDirs);

const command = [python, "-I", "-B", runnerEntry];
const park = [...command, "--park"];

/** A directory with these files. Removed after the test. */
async function directoryWith(files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "parked-")));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const [name, content] of Object.entries(files))
    await writeFile(join(directory, name), content);
  return directory;
}

/**
 * A runner that has loaded a module with this text, or said why not, in an empty work directory.
 */
async function parkModule(source: string) {
  const toolsDir = await directoryWith({ "tool.py": source });
  const workDir = await directoryWith({});
  const argsFile = join(workDir, "runner_args.json");
  const { child, line } = await startParked([...park, "tool", toolsDir, argsFile], workDir);
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = Promise.all([once(child, "exit"), text(child.stdout), text(child.stderr)]);
  const channel = child.stdio[channelFd] as unknown as Duplex;
  return { child, channel, line, ended, workDir };
}

/**
 * What a worker sees of a call of `run`, by a runner that was started for it, and by one that had
 * waited.
 */
async function coldAndParked(
  source: string,
  options: RunOptions = {},
): Promise<readonly [cold: ToolRun, parked: ToolRun]> {
  const toolsDir = await directoryWith({ "tool.py": source });
  const call = (more: object) =>
    runToolWith({ command, toolsDir, ...more }, "tool", "run", options);
  return [await call({}), await call({ park })];
}

function seen({ exitCode, signal, stdout, stderr, document }: ToolRun): object {
  return { exitCode, signal, stdout, stderr, document };
}

describe("a Python runner that waits for its call", () => {
  test("has imported the module, says so in one line, and has written nothing", async () => {
    const { channel, line, ended, workDir } = await parkModule("print('imported', flush=True)");
    expect(line).toBe('{"ready":true}\n');
    expect(await readdir(workDir)).toEqual([]);
    channel.end();
    expect(await ended).toEqual([[0, null], "imported\n", ""]);
  });

  test.for([
    ["an end of file", ""],
    ["another line", "exit\n"],
    ["a line without a length", "call\n"],
    ["a line that does not end", "call 1".padEnd(100, "0")],
    ["the end of half a call", "call 9\n{}"],
  ] as const)("ends at %s, and runs nothing of the tool", async ([, bytes]) => {
    const source = `
import atexit
atexit.register(print, "told of its end")
class Late:
    def __del__(self):
        print("told of its end")
late = Late()
def run():
    print("called")`;
    const { channel, ended } = await parkModule(source);
    channel.end(bytes);
    expect(await ended).toEqual([[0, null], "", ""]);
  });

  test.for([
    ["raises", "raise ValueError('no table')", "ValueError: no table"],
    ["is not there to import", "import no_such_module", /^ModuleNotFoundError: /],
    ["leaves", "import sys; sys.exit(0)", "SystemExit: 0"],
    ["says much", "raise ValueError('x' * 100_000)", /^ValueError: x{400}/],
  ] as const)("says that it is unfit when the module %s", async ([, source, reason]) => {
    const { line, ended } = await parkModule(source);
    expect(JSON.parse(line)).toEqual({ unfit: expect.stringMatching(reason) as string });
    expect(Buffer.byteLength(line)).toBeLessThanOrEqual(4096);
    expect(await ended).toEqual([[1, null], "", ""]);
  });

  test("ends with status 1 when what lies there is no call, and says why", async () => {
    const { channel, ended } = await parkModule("");
    channel.end(callOf("[]"));
    const complaint =
      "the runner arguments cannot be used: ValueError: the file must hold an object";
    expect(await ended).toEqual([
      [1, null],
      "",
      expect.stringContaining(`tool_runner: ${complaint}`) as string,
    ]);
  });

  test("leaves the module's alarm and descriptors as they are", async () => {
    const [cold, parked] = await coldAndParked(`
import os, signal
signal.alarm(3600)
file = os.open("/dev/null", os.O_RDONLY)
def run():
    seconds, _ = signal.getitimer(signal.ITIMER_REAL)
    return {"runs": seconds > 0, "file": os.readlink(f"/proc/self/fd/{file}")}`);
    expect(parked.document).toMatchObject({ result: { runs: true, file: "/dev/null" } });
    expect(seen(parked)).toEqual(seen(cold));
  });

  test("interrupts nobody any more once it is done", async () => {
    const { child, channel, workDir } = await parkModule("def run():\n    return {}");
    const files = { output_dir: workDir, result_file: join(workDir, "result.json") };
    const callEnd = new CallEnd(channel, Infinity);
    channel.write(callOf(JSON.stringify({ module: "tool", function: "run", ...files })));
    await callEnd.done;
    expect(policyOf(child.pid)).toBe("SCHED_BATCH");
  });

  test("answers for a child that the module forked and let go on", async () => {
    const [cold, parked] = await coldAndParked(`
import os
if os.fork() == 0:
    os._exit(0)
os.wait()
def run():
    return {"who": "parent"}`);
    expect(parked.document).toMatchObject({ result: { who: "parent" } });
    expect(seen(parked)).toEqual(seen(cold));
  });
});

describe("nothing of the waiting is to be seen", () => {
  const traces = `
import os, signal, sys
def traces():
    return {
        "argv": sys.argv, "orig_argv": sys.orig_argv[:-1], "path": sys.path[:2] + sys.path[3:],
        "descriptors": sorted(os.listdir("/proc/self/fd"))[:-1], "threads": os.listdir("/proc/self/task").__len__(),
        "environment": {name: value for name, value in os.environ.items() if name != "PWD"}, "here": os.getcwd() == os.path.realpath("."),
        "handlers": [str(signal.getsignal(each)) for each in sorted(signal.valid_signals())],
        "stdin": [str(sys.stdin), sys.stdin.seekable(), sys.stdin is sys.__stdin__, sys.stdin.read(), os.readlink("/proc/self/fd/0")],
        "umask": os.umask(0o22), "session": os.getsid(0) == os.getpid(), "main": sys.modules["__main__"].__file__,
    }
imported = traces()
def run():
    return `;

  test("when the tool runs, but for the wake channel", async () => {
    const [cold, parked] = await coldAndParked(`${traces}traces()`);
    expect(parked.document).toHaveProperty("result.stdin.3", "");
    const { descriptors, ...seenCold } = cold.document!["result"] as { descriptors: string[] };
    expect(parked.document).toEqual({
      ...cold.document,
      result: { ...seenCold, descriptors: [...descriptors, "4"].toSorted() },
    });
  });

  test("when the module is imported, but for the wake channel", async () => {
    const [cold, parked] = await coldAndParked(
      `${traces}{key: value for key, value in imported.items() if key != "descriptors"}`,
    );
    expect(cold.document).toHaveProperty("result.argv");
    expect(parked.document).toEqual(cold.document);
  });

  test("by a program that the tool starts: it inherits three descriptors", async () => {
    const [, parked] = await coldAndParked(`
import subprocess
child = subprocess.Popen(["/bin/ls", "/dev/fd/"], stdout=subprocess.PIPE, close_fds=False)
def run():
    return {"seen": child.communicate()[0].decode().split()}`);
    const { seen: descriptors } = parked.document!["result"] as { seen: string[] };
    // What the test runner itself has inherited is closed by worker/main.ts alone. The fourth is
    // the listing.
    const inherited = inheritableDescriptors().map(String);
    const own = descriptors.filter((descriptor) => !inherited.includes(descriptor));
    expect(own).toEqual(["0", "1", "2", "3"]);
  });
});

describe("what the module has made before the call is finished after it", () => {
  type LeftCase = [what: string, source: string];

  const usualLeft: readonly LeftCase[] = [
    ["a file", "file = open('output/left', 'w'); file.write('all')"],
    ["an exit handler", "import atexit; atexit.register(lambda: open('output/left', 'w').close())"],
    [
      "printed text",
      "import sys; sys.stdout.write('not flushed'); open('output/left', 'w').close()",
    ],
  ];
  const otherLeft: readonly LeftCase[] = [
    [
      "an archive",
      "import zipfile; archive = zipfile.ZipFile('output/left', 'w'); archive.writestr('a', 'b')",
    ],
    [
      "what two objects hold together",
      "class Pair: pass\na, b = Pair(), Pair(); a.b, b.a = b, a; a.file = open('output/left', 'w'); a.file.write('all')",
    ],
    [
      "a thread",
      "import threading, time; threading.Thread(target=lambda: (time.sleep(0.3), open('output/left', 'w').close())).start()",
    ],
    [
      "text that was printed before stdout was another",
      "import sys, os; sys.stdout.write('not flushed')\nclass Other:\n  def write(self, text): pass\n  def flush(self): pass\nsys.stdout = Other(); open('output/left', 'w').close()",
    ],
    [
      "text that a library holds back",
      "import ctypes; ctypes.CDLL(None).puts(b'not flushed'); open('output/left', 'w').close()",
    ],
  ];
  const showLeft = async ([, source]: LeftCase) => {
    const [cold, parked] = await coldAndParked(`${source}\ndef run():\n    return {"ok": True}`);
    const left = async ({ workDir }: ToolRun) => readdir(join(workDir, "output"));
    expect(await left(parked)).toEqual(["left"]);
    expect(seen(parked)).toEqual(seen(cold));
    if (source.includes("write(")) {
      const size = async ({ workDir }: ToolRun) =>
        (await promisify(execFile)("stat", ["-c", "%s", join(workDir, "output/left")])).stdout;
      expect(await size(parked)).toBe(await size(cold));
    }
  };

  test.for(usualLeft)("%s", showLeft);
  test.for(otherLeft)("%s", { tags: "full" }, showLeft);
});

describe("a process ends without taking the interpreter apart", () => {
  const quick = 7;
  const usual = 8;
  const endOf = async (left: string, status: number): Promise<void> => {
    const path = `import sys; sys.path[:0] = [${JSON.stringify(runnerDir)}]`;
    const end = "from tool_runner.exit import leave";
    const script = [path, end, left, `leave(${quick})`, `sys.exit(${usual})`].join("\n");
    const run = promisify(execFile)(python, ["-I", "-B", "-c", script]);
    await expect(run).rejects.toMatchObject({ code: status });
  };

  type QuickCase = [what: string, left: string];

  const usualQuick: readonly QuickCase[] = [
    ["when nothing is left", ""],
    ["with a generator that has begun", "begun = (x for x in 'ab'); next(begun)"],
    [
      "with a daemon",
      "import threading, time; threading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
    ],
  ];
  const otherQuick: readonly QuickCase[] = [
    ["with objects that want to know", "class A:\n  def __del__(self): print('gone')\na = A()"],
    ["with a file that is read", "file = open('/usr/bin/env')"],
    ["with a socket", "import socket; pair = socket.socketpair()"],
    [
      "with libraries that are not Python's own",
      "other = type(sys)('other'); other.__file__ = '/other.so'; sys.modules['other'] = other",
    ],
    ["when an exit handler fails", "import atexit; atexit.register(lambda: 1 / 0)"],
  ];
  const showQuick = ([, left]: QuickCase) => endOf(left, quick);

  test.for(usualQuick)("%s", showQuick);
  test.for(otherQuick)("%s", { tags: "full" }, showQuick);

  test.for([
    ["a file that is written", "import tempfile; file = tempfile.TemporaryFile('w')"],
    [
      "no /proc, which lists the open files",
      "import os\ndef gone(path): raise FileNotFoundError\nos.listdir = gone",
    ],
    ["output that is broken", "sys.stdout = None"],
  ] as const)("but not with %s", ([, left]) => endOf(left, usual));
});
