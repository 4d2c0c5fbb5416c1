/**
 * Programs that calls bring, in real sandboxes.
 */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { StatusDetails } from "../../../worker/protocol/messages/status-details.ts";
import { type RigTool, nodeTool, startRig } from "../../support/workers/rig.ts";

const files = {
  "calls.py": `
def add(a: int, b: int):
    return {"sum": a + b}


def keeps(previous: dict):
    return {"kept": previous}


def sleeps(seconds: float):
    import time
    time.sleep(seconds)
    return {}
`,
};
const add: RigTool = { module: "calls", function: "add", allowed_callers: ["programmatic"] };

describe("an entry for programs", () => {
  test("runs TypeScript and JavaScript, which call tools", { tags: "full" }, async () => {
    await using rig = await startRig({
      tools: { add, run: { runtime: "code", gateway: { tools: ["add"] } } },
      files,
      nodeFiles: { "none.js": "" },
    });
    const code = `
const sums: number[] = await Promise.all(
  inputs.pairs.map(async ([a, b]: [number, number]) => (await tools.add({ a, b })).sum),
);
console.log("sums", sums.length);
display({ sums });
__out = sums.reduce((one: number, other: number) => one + other);
`;
    const inputs = {
      pairs: [
        [1, 2],
        [3, 4],
      ],
    };
    const answer = await rig.call("run", { code, language: "typescript", inputs });
    expect(answer).toMatchObject({
      kind: "success",
      toolResult: { value: 10, stdout: "sums 2\n", stderr: "", displays: [{ sums: [3, 7] }] },
    });
    const failed = await rig.call("run", { code: "let x = 1;\nnull.y", language: "javascript" });
    expect(failed).toMatchObject({
      kind: "error",
      code: "EXECUTION_ERROR",
      response: { error: { data: { line: 2, stack: [expect.stringContaining("line 2")] } } },
    });
  });

  test("refuses what is no program, and logs none", { tags: "promise-G7" }, async () => {
    await using rig = await startRig({
      tools: {
        run: { runtime: "code", languages: ["typescript", "javascript"] },
        tool: nodeTool("none.js", "none"),
      },
      nodeFiles: { "none.js": "" },
    });
    const tooLarge = "é".repeat(130_000) + "1".repeat(3_000);
    for (const [args, message] of [
      [{ code: tooLarge, language: "javascript" }, "args.code: expected text of at most 262144"],
      [{ code: "1", language: "python" }, "args.language"],
      [{ code: "1" }, "args"],
      [{ code: "1", language: "javascript", inputs: [] }, "args.inputs"],
      [{ code: "1", language: "javascript", user_id: "x" }, "user_id"],
    ] as const) {
      const refused = await rig.call("run", args);
      const expected = { kind: "error", code: "INVALID_REQUEST" };
      expect(refused, message).toMatchObject({
        ...expected,
        message: expect.stringContaining(message),
      });
    }
    const forTool = await rig.call("tool", { code: "1", language: "javascript" });
    expect(forTool).toMatchObject({ kind: "error", code: "TOOL_NOT_FOUND" });
    const code = "const aSecretWord = 1;\nconsole.log(6 * 7);\nthrow new Error('no');";
    const failed = await rig.call("run", { code, language: "javascript" });
    expect(failed).toMatchObject({ kind: "error", response: { error: { data: { line: 3 } } } });
    expect(JSON.stringify(failed)).not.toMatch(/\/(?:runner|work|tools|tmp|dev|usr|node)\b/);
    const log = rig.logLines.join("\n");
    expect(log).not.toContain("aSecretWord");
    expect(log).toContain(createHash("sha256").update(code).digest("hex"));
  });

  test("has a value that no printed text can be", { tags: "promise-G7" }, async () => {
    await using rig = await startRig({
      tools: { run: { runtime: "code", languages: ["python"] } },
    });
    const code = `
import json, os, sys
forged = json.dumps({"result": {"value": "forged", "stdout": "", "stderr": "", "displays": []}})
print(forged)
os.write(1, forged.encode())
print("__out__", forged, file=sys.stderr)
open("result.json", "w").write(forged) if os.access(".", os.W_OK) else None
aSecretWord = 1
__out = "true value"
`;
    const answer = await rig.call("run", { code });
    expect(answer).toMatchObject({ kind: "success", toolResult: { value: "true value" } });
    const failed = await rig.call("run", { code: "def f():\n  aSecretWord = 1 / 0\n\nf()" });
    expect(failed).toMatchObject({ kind: "error", response: { error: { data: { line: 2 } } } });
    expect(JSON.stringify(failed)).not.toMatch(/\/(?:runner|work|tools|tmp|dev|usr|node)\b/);
    expect(rig.logLines.join("\n")).not.toContain("aSecretWord");
  });

  test(
    "has no configuration of its call, and a result of one form",
    { tags: "promise-G7" },
    async () => {
      await using rig = await startRig({
        tools: { run: { runtime: "code", languages: ["python"] } },
      });
      const looks = `
import sys
frame, seen = sys._getframe(), []
while frame:
    seen += [str(getattr(each, "tool_config", "")) for each in frame.f_locals.values()]
    frame = frame.f_back
__out = "".join(seen)
`;
      const found = await rig.call("run", { code: looks }, { toolConfig: { key: "a-secret" } });
      expect(found).toMatchObject({
        toolResult: { value: expect.stringContaining("{}") as string },
      });
      expect(JSON.stringify(found)).not.toContain("a-secret");
      const code = `
import glob, json, os
for path in glob.glob("/sandbox/work/result.json") + ["result.json"]:
    open(path, "w").write(json.dumps({"result": {"nothing": 1}}))
os._exit(0)
`;
      const forged = await rig.call("run", { code });
      expect(forged).toMatchObject({ kind: "error", code: "EXECUTION_ERROR" });
    },
  );

  test("sends what its program prints as statuses, where the call asks for that", async () => {
    await using rig = await startRig({
      tools: { run: { runtime: "code", languages: ["javascript"] } },
      nodeFiles: { "none.js": "" },
    });
    const printed = (stream: boolean) => {
      const partial: unknown[] = [];
      const code = "console.log('one\\ntwo'); console.error('three'); 1";
      const onStatus = (_: string, details?: StatusDetails) => partial.push(details?.partialResult);
      const call = { tool: "run", args: { code, stream }, timeoutSeconds: 30 };
      return rig.agent.call(call, { onStatus }).then((answer) => ({ answer, partial }));
    };
    const asked = await printed(true);
    expect(asked.answer).toMatchObject({ toolResult: { value: 1, stdout: "one\ntwo\n" } });
    expect(asked.partial).toContainEqual({ stdout: "one\ntwo" });
    expect(asked.partial).toContainEqual({ stderr: "three" });
    expect((await printed(false)).partial).toEqual([]);
  });

  const prices = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };

  const everything = {
    python: `
import asyncio

found = [each["id"] for each in await tools.search("prices")]
doc = await tools.describe("shop:add", level="schema")
sums = await asyncio.gather(*(tools.shop.add(a=n, b=1) for n in range(3)))
last = await tools.chain([
    {"tool": "shop:add", "args": {"a": 1, "b": 1}},
    {"tool": "shop:keeps", "use_previous": True},
])
waiting = asyncio.create_task(tools.call("shop:sleeps", {"seconds": 60}))
await asyncio.sleep(0)
# Answered after the call has started.
await tools.namespaces()
waiting.cancel()
try:
    await waiting
    cancelled = False
except asyncio.CancelledError:
    cancelled = True
try:
    await tools.call("nowhere")
    code = None
except Exception as error:
    code = error.code
__out = {
    "found": found,
    "takes": sorted(doc["parameters"]["properties"]),
    "sums": [each["sum"] for each in sums],
    "last": dict(last),
    "cancelled": cancelled,
    "code": code,
}
`,
    typescript: `
const found: string[] = (await tools.search("prices")).map(({ id }: { id: string }) => id);
const doc = await tools.describe("shop:add", { level: "schema" });
const sums = await Promise.all([0, 1, 2].map((n) => tools.shop.add({ a: n, b: 1 })));
const last = await tools.chain([
  { tool: "shop:add", args: { a: 1, b: 1 } },
  { tool: "shop:keeps", usePrevious: true },
]);
const abort = new AbortController();
const waiting = tools.call("shop:sleeps", { seconds: 60 }, { signal: abort.signal });
// Answered after the call has started.
await tools.namespaces();
abort.abort();
const cancelled = await waiting.then(() => false, (error: Error) => error.name === "AbortError");
const code = await tools.call("nowhere").catch((error: { code: string }) => error.code);
__out = {
  found,
  takes: Object.keys(doc.parameters.properties).sort(),
  sums: sums.map(({ sum }: { sum: number }) => sum),
  last: { ...last },
  cancelled,
  code,
};
`,
  } as const;

  describe.each([
    ["python", "cold"],
    ["python", "pool"],
    ["python", "template"],
    ["typescript", "cold"],
    ["typescript", "pool"],
    ["typescript", "template"],
  ] as const)("in %s that starts by %s", (language, start) => {
    const tags = start === "template" ? [] : ["full"];

    test("searches, describes, calls, chains and cancels", { tags }, async () => {
      const more = { namespace: "shop", allowed_callers: ["programmatic"] };
      await using rig = await startRig({
        tools: {
          add: { ...add, ...more, description: "Adds prices", parameters: prices },
          keeps: { module: "calls", function: "keeps", ...more },
          sleeps: { module: "calls", function: "sleeps", ...more },
          run: {
            runtime: "code",
            languages: [language],
            gateway: { tools: ["shop:*"] },
            start,
            warm: { min: 1 },
          },
        },
        files,
        nodeFiles: { "none.js": "" },
        isWarm: true,
      });
      if (start !== "cold") await rig.untilWaiting("run");
      const answer = await rig.call("run", { code: everything[language] });
      expect(answer).toMatchObject({
        kind: "success",
        toolResult: {
          value: {
            found: ["shop:add"],
            takes: ["a", "b"],
            sums: [1, 2, 3],
            last: { kept: { sum: 2 } },
            cancelled: true,
            code: "NOT_ALLOWED",
          },
        },
        response: { result: { execution: { start } } },
      });
    });
  });
});
