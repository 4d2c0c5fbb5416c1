/**
 * How a tool's failure is told: a code, a text that may be published, and the traceback on stderr
 * only.
 */
import { afterAll, describe, expect, test } from "vitest";
import {
  forkRunners,
  removeWorkDirs,
  type RunOptions,
  type ToolRun,
  runTool,
  runnerDir,
} from "./run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

function fail(name: string, options: RunOptions = {}): Promise<ToolRun> {
  return runTool("failing_tools", name, options);
}

describe("an exception of the tool is an EXECUTION_ERROR with class and text", () => {
  test.for<[name: string, error: string]>([
    ["without_text", "Tool raised ValueError"],
    ["unprintable_error", "Tool raised Odd: (its text cannot be had)"],
    ["own_type_error", "Tool raised TypeError: object of type 'int' has no len()"],
    ["interrupted", "Tool raised KeyboardInterrupt"],
    ["endless_recursion", "Tool raised RecursionError: maximum recursion depth exceeded"],
    ["fails_later", "Tool raised ValueError: later"],
    ["has_no_number", "Tool raised OSError: [Errno [1]] not a number"],
    ["hides_its_number", "Tool raised Hidden: hidden"],
  ])("%s", async ([name, error]) => {
    const run = await fail(name);
    expect(run).toMatchObject({
      exitCode: 0,
      document: { error, error_code: "EXECUTION_ERROR" },
    });
    expect(run.stderr).toContain("Traceback (most recent call last):");
    expect(run.stderr).not.toContain(runnerDir);
  });

  test("a text is cut at 4000 characters", async () => {
    const { document } = await fail("long_text");
    expect(document?.["error"]).toHaveLength(4000);
    expect(document?.["error"]).toMatch(/^Tool raised ValueError: é+…$/);
  });

  test("directories of the host are not in the text", { tags: "promise-O7" }, async () => {
    const { document } = await fail("names_paths");
    expect(document?.["error"]).toBe(
      "Tool raised FileNotFoundError: input/a.csv, data.json, os.py",
    );
  });

  test("what the tool printed stays on its streams", async () => {
    const run = await fail("prints");
    expect(run.stdout).toBe("to stdout\n");
    expect(run.stderr).toMatch(/^to stderr\nTraceback .*ValueError: after printing\n$/s);
  });
});

const expectMemoryError = async (name: string): Promise<void> => {
  const run = await fail(name, { prefix: ["/usr/bin/prlimit", "--as=200000000"] });
  expect(run).toMatchObject({
    exitCode: 0,
    document: {
      error: "Tool raised MemoryError: it needs more memory than its sandbox may use",
      error_code: "EXECUTION_ERROR",
      error_limit: "memory",
    },
  });
};
const runsOutOfMemory = "a tool that %s within a limit gets a clear error";
test.for(["fills_memory"])(runsOutOfMemory, expectMemoryError);
test.for(["fills_memory_to_the_last_byte"])(runsOutOfMemory, { tags: "full" }, expectMemoryError);

test.for([
  ["opens_files_without_end", "open_files", "OSError: [Errno 24] Too many open files: '/dev/null'"],
  ["writes_a_large_file", "file_size", "OSError: [Errno 27] File too large"],
])("a tool that %s names the limit", async ([name = "", limit, reason]) => {
  const run = await fail(name, { prefix: ["/usr/bin/prlimit", "--nofile=32", "--fsize=100000"] });
  expect(run).toMatchObject({
    exitCode: 0,
    document: { error: `Tool raised ${reason}`, error_code: "EXECUTION_ERROR", error_limit: limit },
  });
});

test("an error of the system that stands for no limit names none", async () => {
  expect((await fail("names_paths")).document).not.toHaveProperty("error_limit");
});

describe("a ToolError is the tool's own word", () => {
  test("its text is the whole message, its cause is on stderr", async () => {
    const run = await fail("tool_error");
    expect(run.document).toEqual({ error: "the file has no header", error_code: "TOOL_ERROR" });
    expect(run.stderr).toContain("KeyError: 'cause'");
  });

  test("one without a text gets one", async () => {
    const { document } = await fail("empty_tool_error");
    expect(document).toEqual({
      error: "The tool reported an error without a text",
      error_code: "TOOL_ERROR",
    });
  });
});

describe("a module that cannot be imported is an IMPORT_ERROR naming module and cause", () => {
  test.for<[module: string, cause: string]>([
    ["no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"],
    ["no_such.module", "ModuleNotFoundError: No module named 'no_such'"],
    ["broken_syntax", "SyntaxError: invalid syntax (broken_syntax.py, line 1)"],
    ["missing_dependency", "ModuleNotFoundError: No module named 'no_such_package_anywhere'"],
    ["missing_name", "ImportError: cannot import name 'no_such_name' from 'os' (os.py)"],
    ["raises_on_import", "FileNotFoundError: [Errno 2] No such file or directory: 'absent.json'"],
    ["exits_on_import", "SystemExit: 3"],
    ["lazy_import", "ImportError: no f today"],
  ])("%s", async ([module, cause]) => {
    const run = await runTool(module, "f");
    expect(run).toMatchObject({
      exitCode: 0,
      document: {
        error: `Module "${module}" cannot be imported: ${cause}`,
        error_code: "IMPORT_ERROR",
      },
    });
    expect(run.stderr).toContain(cause.split(":")[0]);
  });
});

test.for<[module: string, name: string]>([
  ["failing_tools", "no_such_function"],
  ["calling_tools", "not_callable"],
])("%s.%s is TOOL_NOT_FOUND", async ([module, name]) => {
  expect((await runTool(module, name)).document).toEqual({
    error: `Module "${module}" has no function "${name}"`,
    error_code: "TOOL_NOT_FOUND",
  });
});

describe("a tool that calls sys.exit", () => {
  test.for<[code: unknown, call: string]>([
    [null, "sys.exit()"],
    [0, "sys.exit(0)"],
    [256, "sys.exit(256)"],
    ["no input", "sys.exit('no input')"],
  ])("with %j, which no exit status can tell, is an EXECUTION_ERROR", async ([code, call]) => {
    expect(await fail("exits", { args: { code } })).toMatchObject({
      exitCode: 0,
      document: { error: `Tool called ${call}`, error_code: "EXECUTION_ERROR" },
    });
  });

  test.for([
    ["exits", { code: 3 }, 3],
    ["exits", { code: -1 }, 255],
    ["exits_hard", { code: 3 }, 3],
    ["exits_later", {}, 7],
  ] as const)(
    "%s(%j) ends the process with status %i and no result",
    async ([name, args, code]) => {
      expect(await fail(name, { args })).toMatchObject({ exitCode: code, document: undefined });
    },
  );
});

test("a killed tool leaves no result", async () => {
  expect(await fail("kills_itself")).toMatchObject({ signal: "SIGKILL", document: undefined });
});

describe("the state of the output streams does not matter to the answer", () => {
  test.for(["closes_streams", "replaces_streams"])("%s", async (name) => {
    expect(await fail(name)).toMatchObject({ exitCode: 0, document: { result: { ok: true } } });
  });

  test("nor that nobody reads stdout any more", async () => {
    expect(await fail("prints_much", { isStdoutClosed: true })).toMatchObject({
      exitCode: 0,
      document: { error: "Tool raised BrokenPipeError: [Errno 32] Broken pipe" },
    });
    expect(await fail("prints_no_line", { isStdoutClosed: true })).toMatchObject({
      exitCode: 0,
      document: { error: "Tool raised ValueError: after printing" },
    });
  });
});
