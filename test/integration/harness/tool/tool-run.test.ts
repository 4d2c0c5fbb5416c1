/**
 * `harness tool run`: the real sandbox around a tool of a file, and nothing left of it.
 */
import { once } from "node:events";
import { copyFile, mkdir, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { createPassableDirectory } from "../../../../harness/temporary.ts";
import { CliProcess, type CliResult, runCli, runCliProcess } from "../cli-process.ts";
import { isRoot } from "../../../support/is-root.ts";

const timeoutMs = 60_000;

const files: Readonly<Record<string, string>> = {
  "greeting.py": `def greet(name):
    return "Hello, " + name
`,
  "tools.py": `import os, socket, sys, time
from secure_tool_runtime import ToolContext, ToolError
from secure_tool_runtime import Artifact, DynamicTool, DynamicToolProvider
from greeting import greet

class Greeter(DynamicTool):
    async def _run_async_impl(self, args, tool_context=None, credential=None):
        return {"text": greet(args["name"])}

class Greetings(DynamicToolProvider):
    pass

@Greetings.register_tool
def formal(self, name: str):
    return {"text": "Dear " + name}

@Greetings.register_tool
def casual(self, name: str):
    return {"text": greet(name)}

def hello(name: str = "you") -> dict:
    return {"text": greet(name)}

def talks() -> dict:
    print("to stdout \\x1b[31m")
    print("to stderr", file=sys.stderr)
    sys.stdout.write("no newline")
    return {}

def waits(ctx: ToolContext, path: str = "") -> dict:
    print("before")
    ctx.send_status("waiting")
    time.sleep(60)

def cleans_up(ctx: ToolContext):
    ctx.on_cancel(lambda: print("cleaned up"))
    ctx.send_status("waiting")
    while not ctx.cancelled:
        time.sleep(0.01)

def refuses():
    raise ToolError("not today")

def raises():
    raise ValueError("wrong value")

def dies():
    os.kill(os.getpid(), 9)

def looks(ctx: ToolContext, data: str = "", more: str = "") -> dict:
    return {
        "data": ctx.load_artifact_text("data"),
        "more": ctx.load_artifact_text("more"),
        "secret": ctx.get_config("secret"),
        "variable": os.environ.get("FOR_THE_TOOL"),
        "other": os.environ.get("NOT_FOR_THE_TOOL"),
    }

def lists(files: "list[Artifact]", named: "list[Artifact]") -> dict:
    return {"files": [each.as_text() for each in files], "named": [each.as_text() for each in named]}

def connects(port: int) -> dict:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return {"reached": True}
    except OSError as error:
        return {"reached": False}

def descriptors() -> dict:
    return {"open": [fd for fd in os.listdir("/proc/self/fd") if fd == "77"]}

def litters(ctx: ToolContext) -> dict:
    os.symlink("/etc/passwd", "link")
    os.mkfifo("pipe")
    socket.socket(socket.AF_UNIX).bind("socket")
    os.mkdir("directory")
    with open("directory/deep.txt", "w") as file:
        file.write("deep")
    os.chmod("directory/deep.txt", 0o444)
    with open("twice.txt", "w") as file:
        file.write("twice")
    os.link("twice.txt", "again.txt")
    ctx.save_artifact_text("made.txt", "made")
    return {}
`,
  "hello.mjs": `export const hello = async ({ name }, ctx) => {
  console.log("from node");
  await ctx.sendStatus("greeting");
  return { text: "Hello, " + name };
};
`,
  "typed.ts": `export function hello({ name }: { name: string }): object {
  return { text: "Hello, " + name };
}
`,
  "borrowed.py": "from tools import Greeter as Borrowed\n",
  "nested/inner.py": `from greeting import greet
def hello():
    return {"text": greet("from within")}
`,
};

/** A program with two tools, in shell; the arguments are not read. */
const program = `#!/bin/sh
if [ "$1" = --schema ]; then echo '{"tools": {"yes": {}, "no": {}}}'; exit; fi
name=$(sed 's/.*"tool_name":"\\([^"]*\\)".*/\\1/' "$1")
echo "called as $name"
echo "/tools/executable/program: talks" >&2
echo '{"status": "deciding"}' >status.pipe
echo made >output/made.txt
case $name in yes | no) result='{"result": {"text": "'$name'"}}' ;; *) result='{"error": "no such tool"}' ;; esac
echo "$result" >result.json
`;

const manifest = `version: 1
tools:
  greeting: { module: tools, function: hello, sandbox_profile: restrictive }
  answers: { runtime: executable, executable: program, tools: ["yes", "no"] }
  allowed:
    module: tools
    function: hello
    python: science
    mounts: [{ source: /opt, target: /data }]
`;

/** Runs a command with one more descriptor than it knows of. */
const withDescriptor = `
import os, sys
os.dup2(os.open("/etc/passwd", os.O_RDONLY), 77)
os.execv(sys.argv[1], sys.argv[1:])`;

let home: Awaited<ReturnType<typeof createPassableDirectory>>;
let directory: string;

beforeAll(async () => {
  home = await createPassableDirectory("str-tool-run-test-");
  directory = join(home.path, "tools");
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
  await writeFile(join(directory, "input.txt"), "from a file");
  await writeFile(join(directory, "program"), program, { mode: 0o755 });
  await writeFile(join(directory, "manifest.yaml"), manifest);
});
afterAll(() => home[Symbol.asyncDispose]());

/** Runs it with a temporary directory of its own, which shows what it leaves behind. */
async function toolRun(
  target: string,
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<CliResult & { readonly left: readonly string[]; readonly temporary: string }> {
  const temporary = await createPassableDirectory("str-tool-run-test-");
  onTestFinished(() => temporary[Symbol.asyncDispose]());
  vi.stubEnv("TMPDIR", temporary.path);
  const result = await runCli(["tool", "run", join(directory, target), ...args], environment);
  vi.unstubAllEnvs();
  return { ...result, left: await readdir(temporary.path), temporary: temporary.path };
}

describe("harness tool run", { timeout: timeoutMs }, () => {
  test("prints the result, then time and profile, and leaves nothing", async () => {
    const { exitCode, stdout, stderr, left } = await toolRun("tools.py:hello", [
      ...["--args", '{"name": "Ada"}'],
    ]);
    expect({ exitCode, left }).toEqual({ exitCode: 0, left: [] });
    expect(JSON.parse(stdout)).toEqual({ text: "Hello, Ada" });
    expect(stderr).toMatch(/^hello took \d+ ms under the profile standard\n$/);
  });

  test("checks and converts arguments by the code as it is", { tags: "full" }, async () => {
    const path = join(directory, "counts.py");
    await writeFile(path, "def counts(days: int) -> dict:\n    return {'days': days}\n");
    const given = ["--args", '{"days": "5"}'];
    const checked = await toolRun("counts.py:counts", given);
    expect(checked).toMatchObject({ exitCode: 1, left: [] });
    expect(checked.stderr).toMatch(
      /^INVALID_REQUEST: Invalid request: params\.args\.days: expected a whole number, found "5"$/m,
    );
    const unchecked = await toolRun("counts.py:counts", given, { TOOLS_DESCRIBED_BY: "manifest" });
    expect(JSON.parse(unchecked.stdout)).toEqual({ days: "5" });
    const manifestPath = join(directory, "converting", "manifest.yaml");
    await mkdir(join(directory, "converting", "python"), { recursive: true });
    await copyFile(path, join(directory, "converting", "python", "counts.py"));
    await writeFile(
      manifestPath,
      "version: 1\ntools: { counts: { module: counts, function: counts, coerce: true } }\n",
    );
    const converted = await toolRun("converting", given);
    expect(JSON.parse(converted.stdout)).toEqual({ days: 5 });
  });

  test("keeps the description of a tool between runs", { tags: "full" }, async () => {
    const cache = await createPassableDirectory("str-tool-run-cache-");
    onTestFinished(() => cache[Symbol.asyncDispose]());
    const run = () =>
      toolRun("hello.mjs:hello", ["--args", '{"name": 1}'], { XDG_CACHE_HOME: cache.path });
    expect(await run()).toMatchObject({ exitCode: 0 });
    const kept = join(cache.path, "secure-tool-runtime/descriptions");
    const names = await readdir(kept);
    const description = JSON.parse(await readFile(join(kept, names[0]!), "utf8")) as object;
    const parameters = { type: "object", properties: { name: { type: "string" } } };
    await writeFile(join(kept, names[0]!), JSON.stringify({ ...description, parameters }));
    const { stderr } = await run();
    expect(stderr).toContain("INVALID_REQUEST: Invalid request: params.args.name: expected text");
    expect(await readdir(kept)).toEqual(names);
  });

  test("runs the export of typed.ts", { tags: "full" }, () => runExport("typed.ts"));

  test("runs the export of hello.mjs", { tags: "full" }, async () => {
    const stderr = await runExport("hello.mjs");
    expect(stderr).toContain("stdout: from node\n");
    expect(stderr).toContain("status: greeting\n");
  });

  async function runExport(file: string): Promise<string> {
    const { exitCode, stdout, stderr, left } = await toolRun(`${file}:hello`, [
      ...["--args", '{"name": "Ada"}'],
    ]);
    expect({ exitCode, stderr, left }).toMatchObject({ exitCode: 0, left: [] });
    expect(JSON.parse(stdout)).toEqual({ text: "Hello, Ada" });
    return stderr;
  }

  test("runs the class tools.py:Greeter", { tags: "full" }, () => runClass("tools.py:Greeter"));

  test("runs the class borrowed.py:Borrowed", { tags: "full" }, () =>
    runClass("borrowed.py:Borrowed", "--class"),
  );

  async function runClass(target: string, ...options: readonly string[]): Promise<void> {
    const args = ["--args", '{"name": "Ada"}', ...options];
    const { exitCode, stdout, stderr } = await toolRun(target, args);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(stdout)).toEqual({ text: "Hello, Ada" });
  }

  test("runs one tool of a program, with what it prints and makes", async () => {
    const { exitCode, stdout, stderr, left } = await toolRun("program", ["--tool", "no"]);
    expect({ exitCode, left }).toEqual({ exitCode: 0, left: [] });
    expect(JSON.parse(stdout)).toEqual({ text: "no" });
    expect(stderr).toContain("stdout: called as no\n");
    expect(stderr).toContain(`stderr: ${join(directory, "program")}: talks\n`);
    expect(stderr).toContain("status: deciding\n");
    expect(stderr).toContain("artifact made.txt: version 0, text/plain, 5 bytes\n");
    expect(stderr).toMatch(/^no took \d+ ms under the profile standard$/m);
  });

  test("names the tools of a program where none of them was called", async () => {
    const { exitCode, stdout, stderr } = await toolRun("program");
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toContain("TOOL_ERROR: no such tool\n");
    expect(stderr).toContain("choose a tool of program with --tool; its tools: yes, no\n");
  });

  test("runs one tool of a provider, and names all without one", { tags: "full" }, async () => {
    const args = ["--args", '{"name": "Ada"}'];
    const one = await toolRun("tools.py:Greetings", ["--tool", "formal", ...args]);
    expect(one).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(one.stdout)).toEqual({ text: "Dear Ada" });
    const { exitCode, stderr } = await toolRun("tools.py:Greetings", args);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("of Greetings with --tool; its tools: formal, casual\n");
  });

  test("runs a tool of a manifest, as its entry says", { tags: "full" }, async () => {
    const one = await toolRun("", ["--tool", "greeting"]);
    expect(JSON.parse(one.stdout)).toEqual({ text: "Hello, you" });
    expect(one.stderr).toMatch(/^greeting took \d+ ms under the profile restrictive$/m);
    expect(JSON.parse((await toolRun("", ["--tool", "yes"])).stdout)).toEqual({ text: "yes" });
    const none = await toolRun("");
    expect(none).toMatchObject({ exitCode: 2, left: [] });
    expect(none.stderr).toContain("with --tool; its tools: greeting, yes, no, allowed\n");
    const unknown = await toolRun("", ["--tool", "hullo"]);
    expect(unknown).toMatchObject({ exitCode: 2, left: [] });
    expect(unknown.stderr).toContain(
      'has no tool "hullo"; its tools: greeting, yes, no, allowed\n',
    );
  });

  test(
    "runs a tool with the interpreter and the mount that variables allow",
    { tags: "full" },
    async () => {
      const tool = ["--tool", "allowed"];
      const { stdout } = await toolRun("", tool, {
        SANDBOX_PYTHONS: "science=/usr/bin/python3",
        SANDBOX_ALLOWED_MOUNTS: "/opt",
      });
      expect(JSON.parse(stdout)).toEqual({ text: "Hello, you" });
      const refused = await toolRun("", tool);
      expect(refused.stderr).toContain("is not allowed");
      const other = await toolRun("", ["--tool", "greeting"]);
      expect(other.stderr).toMatch(/^greeting took \d+ ms under the profile restrictive\n$/);
    },
  );

  test.for([
    [["--tool", "greeting", "--profile", "standard"], /--profile is for code; the entries in/],
    [["--tool", "greeting", "--debug"], /--debug is for a function or a class/],
    [["--tools-dir", "/tmp"], /--tools-dir is for a tool in a file/],
  ] as const)("refuses %j for a manifest", async ([args, message]) => {
    const { exitCode, stderr } = await toolRun("", args);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(message) });
  });

  test(
    "shows what the tool prints, without letting it control the terminal",
    { tags: "full" },
    async () => {
      const { exitCode, stdout, stderr } = await toolRun("tools.py:talks");
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "{}\n" });
      expect(stderr).toContain("stdout: to stdout \\u001b[31m\n");
      expect(stderr).toContain("stderr: to stderr\n");
      expect(stderr).toContain("stdout: no newline\n");
    },
  );

  test("shows it as it comes, and stops the tool at Ctrl-C", { tags: "full" }, async () => {
    const temporary = await createPassableDirectory("str-tool-run-test-");
    onTestFinished(() => temporary[Symbol.asyncDispose]());
    const args = ["tool", "run", join(directory, "tools.py:waits")];
    await using cli = new CliProcess(args, { TMPDIR: temporary.path });
    await cli.said("stderr", /stdout: before\n/);
    await cli.said("stderr", /status: waiting\n/);
    cli.child.kill("SIGINT");
    expect((await cli.finished).exitCode).toBe(130);
    expect(await readdir(temporary.path)).toEqual([]);
  });

  test("lets a tool clean up at Ctrl-C", { tags: "full" }, async () => {
    const args = ["tool", "run", join(directory, "tools.py:cleans_up")];
    await using cli = new CliProcess(args);
    await cli.said("stderr", /status: waiting\n/);
    cli.child.kill("SIGINT");
    const { exitCode, stderr } = await cli.finished;
    expect(exitCode).toBe(130);
    expect(stderr).toMatch(/^cancelling the call; .*\nstdout: cleaned up\n/m);
  });

  test("stops a tool that runs out of time, and exits with 124", { tags: "full" }, async () => {
    const { exitCode, stderr, left } = await toolRun("tools.py:waits", ["--timeout", "1"]);
    expect({ exitCode, left }).toEqual({ exitCode: 124, left: [] });
    expect(stderr).toContain("SANDBOX_TIMEOUT: ");
  });

  const tells = "tells what an agent is told when %s fails, and exits with 1";

  test.for([["raises", "EXECUTION_ERROR: Tool raised ValueError: wrong value"]] as const)(
    tells,
    async ([name, text]) => {
      const stderr = await runFailing(name, text);
      expect(stderr).toContain("stderr: Traceback (most recent call last):\n");
    },
  );

  test.for([
    ["refuses", "TOOL_ERROR: not today"],
    ["dies", "SANDBOX_FAILED: The tool's process was ended by SIGKILL"],
    ["missing", 'TOOL_NOT_FOUND: Module "tools" has no function "missing"'],
  ] as const)(tells, { tags: "full" }, async ([name, text]) => {
    await runFailing(name, text);
  });

  async function runFailing(name: string, text: string): Promise<string> {
    const { exitCode, stdout, stderr, left } = await toolRun(`tools.py:${name}`);
    expect({ exitCode, stdout, left }).toEqual({ exitCode: 1, stdout: "", left: [] });
    expect(stderr).toContain(`${text}\n`);
    return stderr;
  }

  test("passes files, configuration and variables on, and nothing else", async () => {
    const input = join(directory, "input.txt");
    const { exitCode, stdout, stderr } = await toolRun(
      "tools.py:looks",
      [
        ...["--artifact", `data=${input}`, "--preload", `more=${input}`],
        ...["--config", '{"secret": "s3cret"}', "--env", "FOR_THE_TOOL"],
      ],
      { FOR_THE_TOOL: "yes", NOT_FOR_THE_TOOL: "no" },
    );
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(stdout)).toEqual({
      data: "from a file",
      more: "from a file",
      secret: "s3cret",
      variable: "yes",
      other: null,
    });
  });

  test("passes lists of one file", { tags: "full" }, async () => {
    const input = join(directory, "input.txt");
    const { exitCode, stdout, stderr } = await toolRun("tools.py:lists", [
      ...["--artifact", `files[]=${input}`, "--preload", `named=${input}`],
      ...["--args", '{"named": ["input.txt"]}'],
    ]);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(stdout)).toEqual({ files: ["from a file"], named: ["from a file"] });
  });

  test("runs under the profile that is asked for", { tags: "full" }, async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    for (const [profile, reached] of [
      ["restrictive", false],
      ["permissive", true],
    ] as const) {
      const args = ["--args", JSON.stringify({ port }), "--profile", profile];
      const { stdout, stderr } = await toolRun("tools.py:connects", args);
      expect(JSON.parse(stdout)).toEqual({ reached });
      expect(stderr).toContain(`under the profile ${profile}`);
    }
  });

  test(
    "knows the profiles of SANDBOX_PROFILES_FILE, as a worker does",
    { tags: "full" },
    async () => {
      const path = join(home.path, "profiles.yaml");
      const environment = { SANDBOX_PROFILES_FILE: path };
      const run = (profile: string, more: Record<string, string> = {}) =>
        toolRun("tools.py:hello", ["--profile", profile, "--json"], { ...environment, ...more });

      await writeFile(
        path,
        "version: 1\nprofiles: {big: {extends: standard, limits: {memory_mb: 2048}}}\n",
      );
      const { stdout, stderr } = await run("big");
      expect(stderr).toContain("under the profile big");
      expect(JSON.parse(stdout)).toMatchObject({
        result: { execution: { profile: "big", limits_enforced: { memory: { bound: 2 ** 31 } } } },
      });
      const unknown = await run("huge");
      expect(unknown).toMatchObject({ exitCode: 2, left: [] });
      expect(unknown.stderr).toMatch(/--profile: .*permissive, big.*, found "huge"/);

      await writeFile(path, "version: 1\nprofiles: {big: {extends: big}}\n");
      const wrong = await run("big");
      expect(wrong).toMatchObject({ exitCode: 2, left: [] });
      expect(wrong.stderr).toContain(`${path}:2:27: profile "big": extends: expected one of`);
    },
  );

  test(
    "tells the bounds that held, also where they are tighter than the profile's",
    { tags: "full" },
    async () => {
      const cli = fileURLToPath(new URL("../../../../harness/cli.ts", import.meta.url));
      const command = ["/usr/bin/prlimit", "--nofile=200:200", process.execPath, cli];
      const args = ["tool", "run", join(directory, "tools.py:hello"), "--json"];
      await using run = new CliProcess(args, {}, { command });
      expect(JSON.parse((await run.finished).stdout)).toMatchObject({
        result: { execution: { limits_enforced: { open_files: { bound: 200, by: "kernel" } } } },
      });
    },
  );

  test(
    "has no sandbox where a profile says so and the environment allows it",
    { tags: "full" },
    async () => {
      const path = join(home.path, "unsafe.yaml");
      await writeFile(path, "version: 1\nprofiles: {bare: {extends: standard, backend: host}}\n");
      const run = (environment: Record<string, string>) =>
        toolRun("tools.py:hello", ["--profile", "bare"], {
          SANDBOX_PROFILES_FILE: path,
          ...environment,
        });

      const refused = await run({});
      expect(refused).toMatchObject({ exitCode: 1, left: [] });
      expect(refused.stderr).toContain(
        "SANDBOX_ALLOW_UNSAFE: the backend host of the profile bare",
      );
      const { exitCode, stdout, stderr } = await run({ SANDBOX_ALLOW_UNSAFE: "1" });
      expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
      expect(JSON.parse(stdout)).toEqual({ text: "Hello, you" });
      expect(stderr).toContain("tool runs without isolation");
    },
  );

  test("hands no descriptor on that it was started with itself", { tags: "full" }, async () => {
    const cli = join(import.meta.dirname, "../../../../harness/cli.ts");
    const { stdout, stderr } = await runCliProcess(
      ["tool", "run", join(directory, "tools.py:descriptors")],
      {},
      { command: ["/usr/bin/python3", "-c", withDescriptor, process.execPath, cli] },
    );
    expect({ stderr, result: JSON.parse(stdout) as unknown }).toMatchObject({
      result: { open: [] },
    });
  });

  test("writes created artifacts into a directory, and prints the response as agents get it", async () => {
    const out = join(home.path, "out");
    const { exitCode, stdout, stderr } = await toolRun("tools.py:litters", [
      ...["--out", out, "--json"],
    ]);
    expect(exitCode).toBe(0);
    const { result } = JSON.parse(stdout) as { result: object };
    expect(result).toMatchObject({
      timed_out: false,
      created_artifacts: [{ filename: "made.txt", version: 0, size_bytes: 4 }],
    });
    expect(stderr).toContain("artifact made.txt: version 0, text/plain, 4 bytes\n");
    expect(await readFile(join(out, "made.txt"), "utf8")).toBe("made");
  });

  test(
    "keeps the work directory on demand: plain files, for the caller alone",
    { tags: "full" },
    async () => {
      const { exitCode, stderr, left, temporary } = await toolRun("tools.py:litters", ["--keep"]);
      expect(exitCode).toBe(0);
      const [, kept = ""] = /^kept (\S+)$/m.exec(stderr) ?? [];
      expect(left).toEqual([kept.slice(temporary.length + 1)]);
      expect((await readdir(kept)).sort()).toEqual(["directory", "input", "output", "result.json"]);
      expect(await readFile(join(kept, "directory", "deep.txt"), "utf8")).toBe("deep");
      expect(await readFile(join(kept, "output", "made.txt"), "utf8")).toBe("made");
      const [, without = ""] = /^kept without (.*):/m.exec(stderr) ?? [];
      expect(without.split(", ").sort()).toEqual(
        ["again.txt", "link", "pipe", "socket", "twice.txt"].sort(),
      );
      for (const path of [kept, join(kept, "directory", "deep.txt")]) {
        const { uid, mode } = await stat(path);
        expect({ uid, others: mode & 0o077 }).toEqual({ uid: process.getuid?.(), others: 0 });
      }
    },
  );

  test("keeps it also when the tool failed", { tags: "full" }, async () => {
    const { exitCode, stderr } = await toolRun("tools.py:raises", ["--keep"]);
    expect(exitCode).toBe(1);
    const [, kept = ""] = /^kept (\S+)$/m.exec(stderr) ?? [];
    expect(await readFile(join(kept, "result.json"), "utf8")).toContain("EXECUTION_ERROR");
  });

  test(
    "lets modules be imported from the directory that it is told",
    { tags: "full" },
    async () => {
      const beside = await toolRun("nested/inner.py:hello");
      expect(beside).toMatchObject({ exitCode: 1 });
      expect(beside.stderr).toContain("IMPORT_ERROR: ");
      const { exitCode, stdout } = await toolRun("nested/inner.py:hello", [
        "--tools-dir",
        directory,
      ]);
      expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 });
      expect(JSON.parse(stdout)).toEqual({ text: "Hello, from within" });
    },
  );

  test("says what is wrong with the sandbox of this host", async () => {
    const bwrap = join(home.path, "bwrap");
    const version = '[ "$1" = --version ] && exec echo bubblewrap 0.8.0';
    await writeFile(bwrap, `#!/bin/sh\n${version}\necho no namespaces here >&2\nexit 1\n`, {
      mode: 0o755,
    });
    const { exitCode, stderr, left } = await toolRun("tools.py:hello", [], {
      SANDBOX_BWRAP_BIN: bwrap,
    });
    expect({ exitCode, left }).toEqual({ exitCode: 1, left: [] });
    expect(stderr).toMatch(/^error: .*no namespaces here/s);
    expect(stderr).not.toContain("    at ");
  });

  test.runIf(isRoot)("reads tools that only the caller can read", { tags: "full" }, async () => {
    const own = join(home.path, "private");
    await mkdir(own, { mode: 0o700 });
    await writeFile(join(own, "own.py"), "def hello():\n    return {'text': 'own'}\n");
    const { exitCode, stdout } = await runCli(["tool", "run", join(own, "own.py:hello")]);
    expect({ exitCode, text: JSON.parse(stdout) as unknown }).toEqual({
      exitCode: 0,
      text: { text: "own" },
    });
  });
});
