/**
 * `harness tool run` while one works on a tool: debuggers, arguments from elsewhere, and a run for
 * each change.
 */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createPassableDirectory } from "../../../../harness/temporary.ts";
import { CliProcess, type CliResult, runCli, runCliProcess } from "../cli-process.ts";
import { patience } from "../../../support/patience.ts";

const timeoutMs = 60_000;
const cli = join(import.meta.dirname, "../../../../harness/cli.ts");

/**
 * A person at a terminal: waits for each text, types what belongs to it, and shows all that the
 * terminal did.
 */
const atTerminal = `
import json, os, pty, sys
steps = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen = new = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    seen, new = seen + piece, new + piece
    if steps and steps[0][0].encode() in new:
        os.write(terminal, steps.pop(0)[1].encode())
        new = b""
sys.stdout.write(seen.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

const files: Readonly<Record<string, string>> = {
  "stops.py": `def stops(word):
    count = len(word)
    breakpoint()
    return {"count": count}
`,
  "hello.ts": `export function hello({ name }: { name: string }): object {
  return { text: "Hello, " + name };
}
`,
};

let home: Awaited<ReturnType<typeof createPassableDirectory>>;
beforeAll(async () => {
  home = await createPassableDirectory("str-tool-debug-test-");
  for (const [name, text] of Object.entries(files)) await writeFile(join(home.path, name), text);
});
afterAll(() => home[Symbol.asyncDispose]());

const options = () => ({ cwd: home.path });
const toolRun = (...args: readonly string[]): Promise<CliResult> =>
  runCliProcess(["tool", "run", ...args], {}, options());

describe("harness tool run", { timeout: timeoutMs }, () => {
  test(
    "--debug gives a Python tool the terminal, so that breakpoint() opens pdb; Ctrl-C is pdb's",
    { tags: "full" },
    async () => {
      const prompt = "(Pdb) ";
      const steps = [
        [prompt, "p count\n"],
        // The line after it: Python does not hear a Ctrl-C in the moment before it waits for input.
        [prompt, "\u0003\n"],
        [prompt, "c\n"],
      ];
      const command = [process.execPath, cli, "tool", "run", "stops.py:stops", "--debug"];
      const { exitCode, stdout } = await runCliProcess(
        ["-c", atTerminal, JSON.stringify(steps), ...command, "--args", '{"word": "four"}'],
        { TERM: "xterm" },
        { ...options(), command: ["python3"] },
      );
      expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 });
      expect(stdout).toMatch(/^No sandbox: the tool runs as you do, with the backend host/);
      expect(stdout).toMatch(new RegExp(`> ${home.path}/stops\\.py\\(4\\)stops\\(\\)`));
      expect(stdout).toMatch(/p count\r\n4\r\n/);
      expect(stdout).toContain("--KeyboardInterrupt--");
      expect(stdout).toMatch(/\{\r\n {2}"count": 4\r\n\}/);
    },
  );

  test("--inspect has a Node tool wait for a debugger", { tags: "full" }, async () => {
    const args = ["hello.ts:hello", "--inspect", "0", "--args", '{"name": "you"}'];
    await using run = new CliProcess(["tool", "run", ...args], {}, options());
    const [, url = ""] = await run.said(
      "stderr",
      /Debugger listening on (ws:\/\/127\.0\.0\.1:\S+)/,
    );
    const socket = new WebSocket(url);
    await once(socket, "open");
    const sources: string[] = [];
    socket.addEventListener("message", ({ data }) => {
      const { method, params } = JSON.parse(String(data)) as { method?: string; params?: unknown };
      if (method === "Debugger.scriptParsed") sources.push((params as { url: string }).url);
    });
    const methods = ["Debugger.enable", "Runtime.runIfWaitingForDebugger"];
    methods.forEach((method, id) => socket.send(JSON.stringify({ id, method })));
    await run.said("stderr", /Waiting for the debugger to disconnect/);
    // By its place on this host, where an editor has set its breakpoints.
    const source = `file://${home.path}/hello.ts`;
    await vi.waitFor(() => expect(sources).toContain(source), patience);
    socket.close();
    expect(await run.finished).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("Hello, you") as string,
    });
  });

  test("--debug and --inspect are each for one language, and have no profile", async () => {
    for (const [args, problem] of [
      [["hello.ts:hello", "--debug"], "--debug is for Python; for a Node tool there is --inspect"],
      [
        ["stops.py:stops", "--inspect"],
        "--inspect is for Node; for a Python tool there is --debug",
      ],
      [["stops.py:stops", "--debug", "--profile", "restrictive"], "cannot be used with"],
    ] as const) {
      const [target, ...rest] = args;
      const { exitCode, stderr } = await runCli(["tool", "run", join(home.path, target), ...rest]);
      expect({ exitCode, stderr }).toEqual({
        exitCode: 2,
        stderr: expect.stringContaining(problem) as string,
      });
    }
  });

  test(
    "--args takes arguments from a file, and from standard input",
    { tags: "full" },
    async () => {
      await writeFile(join(home.path, "args.json"), '{"name": "file"}');
      expect(await toolRun("hello.ts:hello", "--args", "@args.json")).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining("Hello, file") as string,
      });
      const command = `echo '{"name": "input"}' | ${process.execPath} ${cli} tool run hello.ts:hello --args -`;
      expect(
        await runCliProcess(["-c", command], {}, { ...options(), command: ["sh"] }),
      ).toMatchObject({
        stdout: expect.stringContaining("Hello, input") as string,
      });
      expect(await toolRun("hello.ts:hello", "--args", "@none.json")).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining("none.json cannot be read: ENOENT.") as string,
      });
    },
  );

  test("--watch runs the tool again when it changes, until Ctrl-C", { tags: "full" }, async () => {
    const args = ["hello.ts:hello", "--watch", "--args", '{"name": "you"}'];
    await using run = new CliProcess(["tool", "run", ...args], {}, options());
    await run.said("stderr", /Waiting for a change below /);
    expect(run.output).toContain("Hello, you");
    const file = join(home.path, "hello.ts");
    await writeFile(file, (files["hello.ts"] ?? "").replace("Hello", "Goodbye"));
    await run.said("stderr", /Changed: \S*hello\.ts\.[^]*Waiting for a change below /);
    expect(run.output).toContain("Goodbye, you");
    run.child.kill("SIGINT");
    expect((await run.finished).exitCode).toBe(130);
  });
});
