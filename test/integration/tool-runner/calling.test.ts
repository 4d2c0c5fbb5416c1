/**
 * How a call's arguments, the context and the configuration reach functions of every shape.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { forkRunners, fixtures, python, removeWorkDirs, runTool, runnerDir } from "./run-tool.ts";

forkRunners();
afterAll(removeWorkDirs);

/** The contexts, by the class that a tool sees. */
const context = "ToolContext";
const facade = "SandboxToolContextFacade";
const synchronous = "SynchronousFacade";
const toolConfig = { key: "value" };

async function call(name: string, args: object, module = "calling_tools"): Promise<unknown> {
  const run = await runTool(module, name, { args, toolConfig });
  expect(run).toMatchObject({ exitCode: 0 });
  return run.document;
}

describe("a tool that fits the arguments gets them", () => {
  test.for<[name: string, args: object, given: object]>([
    ["no_context", { message: "hi €" }, { message: "hi €" }],
    ["no_context", {}, { message: "Hello" }],
    ["keyword_only", { a: 1 }, { a: 1, b: 2 }],
    ["any_name", { a: 1, "not-a-name": 2 }, { a: 1, "not-a-name": 2 }],
    ["any_name", {}, {}],
    ["positional_only", { c: 5, a: 1 }, { a: 1, b: 2, c: 5 }],
    ["positional_only_beside_any_name", { a: 1, b: 2 }, { a: 1, kwargs: { b: 2 } }],
    ["first_is_data", { city: "Oslo" }, { city: "Oslo", days: 1 }],
    ["first_is_untyped", { city: "Oslo" }, { city: "Oslo", days: 1 }],
    ["context_name_in_args", { context: "text" }, { context: "text", other: 1 }],
    ["first_is_greeted", { name: "Ann" }, { greeting: "Hello, Ann!" }],
    ["returns_awaitable", { message: "m" }, { message: "m" }],
    ["cached", { message: "m" }, { message: "m" }],
    ["callable_object", { message: "m" }, { message: "m" }],
    ["any_number_after_data", { city: "Oslo" }, { city: "Oslo", count: 0 }],
    ["any_number_of_data", { a: 1 }, { count: 0, kwargs: { a: 1 } }],
    ["builtin", { message: "m" }, { message: "m" }],
  ])("%s(%j)", async ([name, args, given]) => {
    expect(await call(name, args)).toEqual({ result: given, outputs: {} });
  });
});

describe("the context reaches a tool that takes it", () => {
  test.for<[name: string, args: object, given: object]>([
    ["context_first_any_name", { message: "m" }, { runtime: context, message: "m" }],
    [
      "context_first_annotated_any",
      { message: "m" },
      { c: context, message: "m", user: ["user-42"] },
    ],
    ["context_first_used_within", { message: "m" }, { runtime: context, sent: true }],
    ["context_first_unused", { message: "m" }, { _runtime: context, message: "m" }],
    ["context_named_first_with_default", {}, { context, message: "m" }],
    ["bound_method_with_context", { message: "m" }, { runtime: context, message: "m", sent: true }],
    ["context_named_last", { message: "m" }, { message: "m", ctx: context }],
    ["context_named_keyword_only", { message: "m" }, { message: "m", tool_context: context }],
    ["context_positional_only", { last: 2 }, { ctx: context, message: "m", last: 2 }],
    ["context_and_any_name", { a: 1 }, { ctx: context, a: 1 }],
    ["asynchronous", { message: "m" }, { ctx: context, message: "m" }],
    ["decorated", { message: "m" }, { ctx: context, message: "m" }],
    ["partial", { message: "m" }, { ctx: context, prefix: "p", message: "m" }],
    ["bound_method", { message: "m" }, { message: "m", ctx: context }],
    ["context_first_positional_only", {}, { a: context, app: "AgentA", b: 2, c: 3 }],
    ["decorated_without_wraps", { message: "m" }, { ctx: context, message: "m" }],
    ["asynchronous_without_wraps", { args: 1 }, { ctx: context, args: 1 }],
    ["any_number", { a: 1 }, { first: context, count: 1, kwargs: { a: 1 } }],
    ["any_number_alone", {}, { first: context, count: 1 }],
    ["any_number_before_keywords", { message: "m" }, { first: context, count: 1, message: "m" }],
    ["any_number_beside_context", { a: 1 }, { count: 0, ctx: context, kwargs: { a: 1 } }],
    ["passing_method", { a: 1 }, { first: context, count: 1, kwargs: { a: 1 } }],
  ])("%s(%j)", async ([name, args, given]) => {
    expect(await call(name, args)).toEqual({ result: given, outputs: {} });
  });

  test.for<[module: string, name: string, given: object]>([
    ["annotated_tools", "facade", { where: facade }],
    ["annotated_tools", "optional_facade", { where: synchronous }],
    ["annotated_by_class_tools", "facade", { where: synchronous }],
    ["annotated_by_class_tools", "optional_facade", { where: synchronous }],
    ["annotated_by_class_tools", "own_context", { is_context: true }],
    ["portable_tools", "asynchronous_facade", { where: facade }],
    ["portable_tools", "plain_facade", { where: facade }],
    ["portable_tools", "asynchronous_sandbox_facade", { where: facade, is_facade: true }],
    ["portable_tools", "plain_sandbox_facade", { where: synchronous, is_facade: true }],
    ["portable_tools", "optional_sandbox_facade", { where: synchronous }],
    ["portable_tools", "agents_context", { tool_context: null, tool_config: toolConfig }],
    ["portable_tools", "agents_context_first", { context }],
    ["portable_string_tools", "agents_context", { tool_context: null }],
    ["portable_string_tools", "optional_facade", { where: facade }],
  ])("by the annotation of %s.%s", async ([module, name, given]) => {
    expect(await call(name, { message: "m" }, module)).toEqual({
      result: { message: "m", ...given },
      outputs: {},
    });
  });

  test("an annotated parameter goes before one that is named for it", async () => {
    expect(await call("facade_beside_named", {}, "annotated_tools")).toEqual({
      result: { where: facade, ctx: "data" },
      outputs: {},
    });
  });

  test.for(["portable_tools", "portable_string_tools"])(
    "words of an annotation that are no types say nothing, in %s",
    async (module) => {
      expect(await call("described", { text: "t" }, module)).toEqual({
        result: { text: "t", kind: "x" },
        outputs: {},
      });
    },
  );
});

describe("the context stays away from parameters that are annotated as data or can do without", () => {
  test.for<[name: string, args: object, given: object]>([
    ["optional_any_first", {}, { context: null, text: "t" }],
    [
      "optional_context_name",
      { text: "t" },
      { text: "t", context: null, ctx: null, tool_context: null },
    ],
    [
      "optional_context_name",
      { text: "t", context: "a chat" },
      { text: "t", context: "a chat", ctx: null, tool_context: null },
    ],
    ["context_name_is_data", { text: "t" }, { text: "t", context: "none" }],
    ["context_name_is_optional_data", { text: "t" }, { text: "t", context: null }],
  ])("%s(%j)", async ([name, args, given]) => {
    expect(await call(name, args)).toEqual({ result: given, outputs: {} });
  });
});

describe("the configuration reaches a parameter named tool_config", () => {
  test.for<[name: string, args: object, given: object]>([
    ["with_config", { name: "n" }, { name: "n", tool_config: toolConfig }],
    ["config_first", { name: "n" }, { tool_config: toolConfig, name: "n" }],
    ["config_and_context", { name: "n" }, { ctx: context, tool_config: toolConfig, name: "n" }],
    ["any_name", {}, {}],
    ["any_name", { tool_config: 5 }, { tool_config: 5 }],
  ])("%s(%j)", async ([name, args, given]) => {
    expect(await call(name, args)).toEqual({ result: given, outputs: {} });
  });
});

describe("arguments that do not fit are refused by name", () => {
  test.for<[name: string, args: object, error: string]>([
    [
      "no_context",
      { unexpected: 1 },
      'no_context() does not take the argument "unexpected"; it takes message',
    ],
    [
      "keyword_only",
      { a: 1, x: 1, y: 2 },
      'keyword_only() does not take the arguments "x", "y"; it takes a, b',
    ],
    ["keyword_only", { b: 1 }, 'keyword_only() is missing the argument "a"'],
    ["first_is_data", {}, 'first_is_data() is missing the argument "city"'],
    ["first_is_greeted", {}, 'first_is_greeted() is missing the argument "name"'],
    [
      "first_is_greeted",
      { nmae: "Ann" },
      'first_is_greeted() does not take the argument "nmae"; it takes name',
    ],
    ["first_is_untyped", { days: 2 }, 'first_is_untyped() is missing the argument "city"'],
    ["positional_only", {}, 'positional_only() is missing the argument "a"'],
    ["data_by_position", {}, 'data_by_position() is missing the argument "number"'],
    [
      "context_first_any_name",
      { nothing: 1 },
      'context_first_any_name() does not take the argument "nothing"; it takes message',
    ],
    ["bound_method", {}, 'bound_method() is missing the argument "message"'],
    [
      "any_number_alone",
      { a: 1 },
      'any_number_alone() does not take the argument "a"; it takes no arguments',
    ],
  ])("%s(%j)", async ([name, args, error]) => {
    expect(await call(name, args)).toEqual({ error, error_code: "EXECUTION_ERROR" });
  });

  test.for([
    ["with_config", "name"],
    ["config_beside_any_name", "any other"],
  ])(
    "an argument cannot take the place of the configuration of %s",
    { tags: "promise-S22" },
    async ([name, takes]) => {
      const args = { name: "n", tool_config: { key: "the caller's" } };
      expect(await call(name!, args)).toEqual({
        error: `${name}() does not take the argument "tool_config"; it takes ${takes}`,
        error_code: "EXECUTION_ERROR",
      });
    },
  );

  test("an argument cannot take the place of an annotated context", async () => {
    expect(await call("facade", { message: "m", where: "here" }, "annotated_tools")).toEqual({
      error: 'facade() does not take the argument "where"; it takes message',
      error_code: "EXECUTION_ERROR",
    });
  });
});

test("code objects are read as `inspect` would read the function", async () => {
  const { stdout, stderr } = await promisify(execFile)(python, [
    "-B",
    `${fixtures}/signature_check.py`,
    runnerDir,
    fixtures,
  ]);
  expect(stdout).toBe("");
  expect(Number(stderr)).toBeGreaterThan(80);
});
