/**
 * What a tool's end and its result.json mean.
 */
import { rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { readResult, withoutDirectories } from "../../../worker/invocation/steps/result.ts";
import { type ErrorCode, InvocationError, errorCodes } from "../../../worker/protocol/errors.ts";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import type { ExitReport } from "../../../worker/sandbox/sandbox.ts";
import { unmeasured } from "../../support/sandboxes/usage.ts";
import type { WorkDir } from "../../../worker/sandbox/work/work-dir.ts";
import { newWorkDir } from "../../support/sandboxes/work-dir.ts";
import { timesTheWork } from "../../support/cpu-time.ts";

const never = new AbortController().signal;

const { limits } = restrictiveProfile;

const wellEnded: ExitReport = {
  started: true,
  exitCode: 0,
  signal: undefined,
  exceeded: undefined,
  usage: unmeasured,
  stdout: { text: "", droppedBytes: 0 },
  stderr: { text: "", droppedBytes: 0 },
};

/** A work directory as a tool leaves it. */
async function leftWorkDir(result?: string | Uint8Array): Promise<WorkDir> {
  const workDir = await newWorkDir();
  onTestFinished(() => workDir[Symbol.asyncDispose]());
  if (result !== undefined) await writeFile(join(workDir.path, "result.json"), result);
  return workDir;
}

async function resultOf(result: unknown) {
  return readResult(await leftWorkDir(JSON.stringify(result)), wellEnded, limits, never);
}

async function failureOf(
  result?: string | Uint8Array,
  report: ExitReport = wellEnded,
): Promise<InvocationError> {
  return failure(readResult(await leftWorkDir(result), report, limits, never));
}

async function failure(reading: Promise<unknown>): Promise<InvocationError> {
  const error: unknown = await reading.then(
    () => new Error("the result was accepted"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(InvocationError);
  return error as InvocationError;
}

describe("a result", () => {
  test("is the tool's object, as it is", async () => {
    const value = { status: "success", rows: [1, null, { a: "é" }] };
    expect((await resultOf({ result: value })).value).toEqual(value);
  });

  test.each([
    ["null", null],
    ["empty", ""],
  ])(
    "counts beside an error that is %s, which runners of other generations write",
    async (_name, error) => {
      expect((await resultOf({ result: { a: 1 }, error })).value).toEqual({ a: 1 });
    },
  );

  test("with Python's NaN has null there", async () => {
    const workDir = await leftWorkDir('{"result": {"mean": NaN, "text": "NaN"}}');
    expect((await readResult(workDir, wellEnded, limits, never)).value).toEqual({
      mean: null,
      text: "NaN",
    });
  });

  test("keeps members named like those of every object", async () => {
    const workDir = await leftWorkDir('{"result": {"__proto__": {"isAdmin": true}}}');
    const { value } = await readResult(workDir, wellEnded, limits, never);
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect(value["isAdmin"]).toBeUndefined();
  });

  test("may be as large as a message", async () => {
    const workDir = await leftWorkDir(`{"result":{"t":"${"x".repeat(10_000_000 - 19)}"}}`);
    const { value } = await readResult(workDir, wellEnded, limits, never);
    expect(value["t"]).toHaveLength(10_000_000 - 19);
  });
});

describe("a tool that was ended for its memory", () => {
  const exceeded = { limit: "memoryBytes", bound: 512, peak: 600 } as const;
  const killed = {
    ...wellEnded,
    exitCode: undefined,
    signal: "SIGKILL",
    exceeded,
  } as const;

  test.each([
    ["by the worker", killed],
    ["before its sandbox was known to have started", { ...killed, started: false }],
    ["by its interpreter", { ...killed, signal: "SIGABRT" }],
  ])("%s is answered like one that raises for it, without what it printed", async (_by, report) => {
    const stderr = { text: "<--- Last few GCs --->", droppedBytes: 0 };
    expect(await failureOf(undefined, { ...report, stderr })).toMatchObject({
      code: "EXECUTION_ERROR",
      message: "Tool needs more memory than its sandbox may use",
      limit: exceeded,
    });
  });

  test("has its result where it ended before that", async () => {
    const workDir = await leftWorkDir('{"result": {"a": 1}}');
    const report = { ...wellEnded, exceeded } as const;
    expect((await readResult(workDir, report, limits, never)).value).toEqual({ a: 1 });
  });
});

describe("the notes about outputs", () => {
  const nothing = { mimeType: undefined, description: undefined };

  test("tell type and description of a file", async () => {
    const { outputs } = await resultOf({
      result: {},
      outputs: {
        "a.csv": { mime_type: "text/csv", description: "All rows" },
        "b.bin": {},
        "c.bin": { mime_type: null, description: null, other: 1 },
      },
    });
    expect(outputs.get("a.csv")).toEqual({ mimeType: "text/csv", description: "All rows" });
    expect(outputs.get("b.bin")).toEqual(nothing);
    expect(outputs.get("c.bin")).toEqual(nothing);
    expect(outputs.get("d.bin")).toBeUndefined();
  });

  test.each([
    ["of another type", { "a.csv": { mime_type: 5, description: ["x"] } }],
    ["of any length", { "a.csv": { mime_type: "x".repeat(256), description: "x".repeat(2_001) } }],
  ])("are left out where they are %s", async (_name, outputs) => {
    expect((await resultOf({ result: {}, outputs })).outputs.get("a.csv")).toEqual(nothing);
  });

  test.each([
    ["a list", ["a.csv"]],
    ["a text", "a.csv"],
    ["null", null],
    ["plain", { "a.csv": 5 }],
  ])("are none where they are %s", async (_name, notes) => {
    const { outputs } = await resultOf({ result: {}, outputs: notes });
    for (const name of ["a.csv", "0", "length"]) expect(outputs.get(name)).toBeUndefined();
  });

  test("of a file named __proto__ are that file's", async () => {
    const workDir = await leftWorkDir(
      '{"result": {}, "outputs": {"__proto__": {"mime_type": "text/csv"}}}',
    );
    const { outputs } = await readResult(workDir, wellEnded, limits, never);
    expect(outputs.get("__proto__")).toEqual({ ...nothing, mimeType: "text/csv" });
    // What the notes would inherit is no note.
    expect(outputs.get("mime_type")).toBeUndefined();
    expect((await resultOf({ result: {}, outputs: {} })).outputs.get("__proto__")).toBeUndefined();
  });
});

describe("an error that the runner reports", () => {
  const runnersOwn: readonly ErrorCode[] = [
    "EXECUTION_ERROR",
    "IMPORT_ERROR",
    "TOOL_NOT_FOUND",
    "TOOL_ERROR",
    "RESOURCE_EXHAUSTED",
  ];

  test.each(runnersOwn)("keeps its code: %s", async (code) => {
    const error = await failureOf(JSON.stringify({ error: "no such row", error_code: code }));
    expect(error).toMatchObject({ code, message: "no such row" });
  });

  test.each([
    ...errorCodes.filter((code) => !runnersOwn.includes(code)),
    ...["", "toString", "__proto__", "MY_CODE"],
    ...[undefined, null, 5, {}],
  ])("is the tool's own where the code is not the runner's to give: %j", async (code) => {
    const error = await failureOf(JSON.stringify({ error: "no such row", error_code: code }));
    expect(error).toMatchObject({ code: "TOOL_ERROR", message: "no such row" });
  });

  test.each([
    ["memory", "memoryBytes"],
    ["file_size", "fileSizeBytes"],
  ] as const)("names the limit that its tool met: %s", async (word, limit) => {
    const document = { error: "no more", error_code: "EXECUTION_ERROR", error_limit: word };
    const error = await failureOf(JSON.stringify(document));
    expect(error.limit).toEqual({ limit, bound: limits[limit], peak: undefined });
  });

  test.each([undefined, null, "", "toString", "memoryBytes", 5, {}])(
    "names none by what is no word for a limit: %j",
    async (word) => {
      const error = await failureOf(JSON.stringify({ error: "no more", error_limit: word }));
      expect(error).toMatchObject({ code: "TOOL_ERROR", limit: undefined });
    },
  );

  test("wins over a result", async () => {
    const error = await failureOf(JSON.stringify({ result: { a: 1 }, error: "half done" }));
    expect(error).toMatchObject({ code: "TOOL_ERROR", message: "half done" });
  });

  test("is cut to 4000 characters, all of them whole", async () => {
    const error = await failureOf(JSON.stringify({ error: `x${"😀".repeat(3_000)}` }));
    expect(error.message).toHaveLength(4_000);
    expect(error.message.isWellFormed()).toBe(true);
  });
});

describe("a result.json that is no result", () => {
  const noResult = "The tool's result holds neither a result object nor an error";
  const noObject = "The tool's result is not a JSON object";

  test.each([
    ["nothing of a result", "{}", noResult],
    ["a null", '{"result": null}', noResult],
    ["a text", '{"result": "done"}', noResult],
    ["a number", '{"result": 5}', noResult],
    ["a list", '{"result": [1]}', noResult],
    ["an error that is no text", '{"error": {"message": "x"}}', noResult],
    ["an empty error", '{"error": ""}', noResult],
    ["a list at the top", "[]", noObject],
    ["null at the top", "null", noObject],
    ["a text at the top", '"done"', noObject],
    ["nothing", "", "The tool's result cannot be read: not valid JSON"],
    ["half a document", '{"result": {', /^The tool's result cannot be read: not valid JSON/],
    ["bad UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), /: not valid UTF-8$/],
    ["a million levels", "[".repeat(1_000_000), /: nested deeper than 100 levels$/],
    ["a million values", `[${"1,".repeat(999_999)}1]`, /: more than 250000 values$/],
  ])("but %s is an internal error that says so", async (_name, text, message) => {
    const error = await failureOf(text);
    expect(error.code).toBe("INTERNAL_ERROR");
    expect(error.message).toMatch(message);
  });

  test("because there is none, is an internal error", async () => {
    expect(await failureOf(undefined)).toMatchObject({
      code: "INTERNAL_ERROR",
      message: "The tool ended without a result",
    });
  });

  test("but a link to somebody else's file is as good as none", async () => {
    const workDir = await leftWorkDir();
    const secret = join(workDir.path, "..", `secret-of-${process.pid}.json`);
    await writeFile(secret, '{"result": {"stolen": true}}');
    onTestFinished(() => rm(secret));
    await symlink(secret, join(workDir.path, "result.json"));
    expect(await failure(readResult(workDir, wellEnded, limits, never))).toMatchObject({
      code: "INTERNAL_ERROR",
      message: "The tool ended without a result",
    });
  });

  test(
    "is read as it was measured, though it grows meanwhile",
    { tags: "promise-O2" },
    async () => {
      const text = JSON.stringify({ result: { a: 1 } });
      const workDir = await leftWorkDir(text);
      const grown: WorkDir = Object.create(workDir, {
        openLeft: {
          value: async (name: string) => {
            const file = await workDir.openLeft(name);
            // Who has a descriptor of the file need not be a process of the sandbox.
            await truncate(join(workDir.path, name), 2 ** 40);
            return file;
          },
        },
      }) as WorkDir;
      expect((await readResult(grown, wellEnded, limits, never)).value).toEqual({ a: 1 });
    },
  );

  test(
    "but larger than a message is refused by its size alone",
    { tags: "promise-O2" },
    async () => {
      const workDir = await leftWorkDir("{");
      // A sparse file: reading it would take as long as reading a full one.
      await truncate(join(workDir.path, "result.json"), 2 ** 40);
      expect(await failure(readResult(workDir, wellEnded, limits, never))).toMatchObject({
        code: "RESOURCE_EXHAUSTED",
        message:
          "The tool's result has 1099511627776 bytes; at most 10000000 can be returned. Return large data as an artifact.",
      });
    },
  );
});

describe("a tool's process that did not end well", () => {
  const good = JSON.stringify({ result: { a: 1 } });
  const stderr = (text: string) => ({ text, droppedBytes: 0 });

  test("exited with a code: its result does not count", async () => {
    const report = { ...wellEnded, exitCode: 3, stderr: stderr("cannot open settings.ini\n") };
    expect(await failureOf(good, report)).toMatchObject({
      code: "SANDBOX_FAILED",
      message: "The tool's process exited with code 3: cannot open settings.ini",
    });
  });

  test("was ended by a signal", async () => {
    const report = { ...wellEnded, exitCode: undefined, signal: "SIGKILL" };
    expect(await failureOf(good, report)).toMatchObject({
      code: "SANDBOX_FAILED",
      message: "The tool's process was ended by SIGKILL",
    });
  });

  test(
    "never started: why is for the log, which may see host paths",
    { tags: "promise-O7" },
    async () => {
      const report = {
        ...wellEnded,
        started: false,
        exitCode: undefined,
        stderr: stderr("bwrap: Can't find source path /srv/secret/tools\n"),
      };
      const error = await failureOf(undefined, report);
      expect(error).toMatchObject({
        code: "SANDBOX_FAILED",
        message: "The sandbox could not be started",
      });
      expect((error.cause as Error).message).toContain("/srv/secret/tools");
    },
  );

  test(
    "is quoted with the last 500 characters it said, without directories",
    { tags: "promise-O7" },
    async () => {
      const words = `first ${"x".repeat(1_000)}\n  File "/opt/venv/lib/site.py", line 3\nKeyError: 'a'\n`;
      const { message } = await failureOf(good, {
        ...wellEnded,
        exitCode: 1,
        stderr: stderr(words),
      });
      expect(message).toMatch(/exited with code 1: …x+/);
      expect(message.endsWith(`File "site.py", line 3\nKeyError: 'a'`)).toBe(true);
      expect(message.length).toBeLessThan(600);
    },
  );

  test("is quoted without halves of characters", async () => {
    const report = { ...wellEnded, exitCode: 1, stderr: stderr(`${"😀".repeat(400)}x`) };
    expect((await failureOf(good, report)).message.isWellFormed()).toBe(true);
  });
});

describe("reading a result", () => {
  test("is given up with the signal's reason", async () => {
    const workDir = await leftWorkDir(`{"result":{"t":"${"x".repeat(5_000_000)}"}}`);
    const reason = new Error("shut down");
    await expect(readResult(workDir, wellEnded, limits, AbortSignal.abort(reason))).rejects.toBe(
      reason,
    );
  });
});

describe("a text without directories", () => {
  test.each([
    ["/opt/venv/lib/site.py", "site.py"],
    ['File "/usr/lib/python3.11/json/decoder.py", line 3', 'File "decoder.py", line 3'],
    ["cannot open /srv/data+1/a~b@c/file-1.txt: denied", "cannot open file-1.txt: denied"],
    ["a=/x/y b=(/u/v/w)", "a=y b=(w)"],
    ["/tmp", "/tmp"],
    ["and/or either/or/both", "and/or either/or/both"],
    ["1/2 of 3/4/5", "1/2 of 3/4/5"],
    ["no path", "no path"],
  ])("of %j is %j", (text, expected) => {
    expect(withoutDirectories(text)).toBe(expected);
  });

  const part = fc.stringMatching(/^[a-z0-9._-]{1,8}$/);
  propertyTest.prop([fc.array(part, { minLength: 2, maxLength: 6 })])(
    "names of any absolute path its last part only",
    (parts) => {
      expect(withoutDirectories(`open '/${parts.join("/")}' failed`)).toBe(
        `open '${parts.at(-1)}' failed`,
      );
    },
  );

  test.each([
    ["slashes", "", "/"],
    ["one endless name", "/", "a"],
    ["parts without end", "", "/a"],
    ["signs that may stand in a name", "", "/-"],
    ["names that begin again and again", "", "@/a"],
  ])("takes no time to find, of %s", (_name, first, more) => {
    const find = (length: number) => {
      const text = first + more.repeat(length / more.length);
      return (): void => void withoutDirectories(text);
    };
    // To begin anew at each character would take 400 times as much.
    expect(timesTheWork(find((64 * 1024) / 20), find(64 * 1024))).toBeLessThan(100);
  });
});
