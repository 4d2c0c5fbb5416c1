/**
 * What Node tools say of themselves: by members of the function, or by types and JSDoc of their
 * source.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { descriptionInSource } from "../../../tool-runner/node/describe/source.js";
import { type Schema, descriptionOf } from "../../../tool-runner/node/describe/tool.js";
import { removeWorkDirs, runTool } from "../node-runner/run-node-tool.ts";

const [string, number, boolean, nothing] = ["string", "number", "boolean", "null"].map((type) => ({
  type,
}));
const ajv = new Ajv2020({ strict: false });
let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "described-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
  await removeWorkDirs();
});

/** What is read of the export `tool` of a module. */
async function inSource(source: string, extension = "ts") {
  const file = join(directory, `tool.${extension}`);
  await writeFile(file, source);
  const found = await descriptionInSource(file, "tool");
  for (const schema of [found.parameters, found.result]) {
    if (schema !== undefined) ajv.compile(schema);
  }
  return found;
}

function object(properties: object, required: string | readonly string[] = "", more = {}) {
  const list = typeof required === "string" ? required.split(" ") : required;
  const names = required === "" ? {} : { required: list };
  return { type: "object", properties, ...names, ...more };
}

type Row = [what: string, args: string, parameters: object | undefined, before?: string];

describe("the parameters of TypeScript", () => {
  test.for<Row>([
    ["no parameters", "()", object({})],
    ["an unknown object", "(args)", undefined],
    ["an imported type", "(args: Args)", undefined, 'import type { Args } from "./args.ts";'],
    [
      "keywords",
      "({ a }: { a: string; b: number; c?: boolean; d: null; e: unknown; f: object })",
      object(
        { a: string, b: number, c: boolean, d: nothing, e: {}, f: { type: "object" } },
        "a b d e f",
      ),
    ],
    [
      "readonly members, quoted names, methods and computed names",
      `(args: { readonly a: string; "b c": number; d(): void; [Symbol.iterator]: string })`,
      object({ a: string, "b c": number }, ["a", "b c"]),
    ],
    [
      "literals",
      `(args: { a: "x" | "y"; b: 1 | -2; c: true; d: "x" | 1 | null; e: \`a\${string}\` })`,
      object(
        {
          a: { ...string, enum: ["x", "y"] },
          b: { ...number, enum: [1, -2] },
          c: { ...boolean, enum: [true] },
          d: { anyOf: [{ enum: ["x", 1] }, nothing] },
          e: string,
        },
        "a b c d e",
      ),
    ],
    [
      "unions",
      "(args: { a: string | number; b?: string | null; c: string | undefined; d: string | Foreign })",
      object(
        { a: { anyOf: [string, number] }, b: { anyOf: [string, nothing] }, c: string, d: {} },
        "a d",
      ),
    ],
    [
      "undefined by another name",
      "(args: { a: Maybe; b: (string | undefined); c: Circle; d: () => undefined; e: Text })",
      object(
        {
          a: { $ref: "#/$defs/Maybe" },
          b: string,
          c: { $ref: "#/$defs/Circle" },
          d: {},
          e: { $ref: "#/$defs/Text" },
        },
        "c d e",
        {
          $defs: {
            Maybe: { $ref: "#/$defs/Text" },
            Text: string,
            Circle: { anyOf: [string, { $ref: "#/$defs/Circle" }] },
          },
        },
      ),
      "type Maybe = Text | undefined; type Text = string; type Circle = string | Circle;",
    ],
    [
      "arrays",
      "(args: { a: string[]; b: Array<number>; c: readonly (string | null)[]; d: ReadonlyArray<X> })",
      object(
        {
          a: { type: "array", items: string },
          b: { type: "array", items: number },
          c: { type: "array", items: { anyOf: [string, nothing] } },
          d: { type: "array" },
        },
        "a b c d",
      ),
    ],
    [
      "tuples",
      "(args: { a: [string, number?]; b: [x: string]; c: [string, ...number[]] })",
      object(
        {
          a: { type: "array", prefixItems: [string, number], minItems: 1, maxItems: 2 },
          b: { type: "array", prefixItems: [string], minItems: 1, maxItems: 1 },
          c: { type: "array" },
        },
        "a b c",
      ),
    ],
    [
      "records and index signatures",
      "(args: { a: Record<string, number>; b: { [name: string]: string }; c: Record<string, any> })",
      object(
        {
          a: { type: "object", additionalProperties: number },
          b: object({}, "", { additionalProperties: string }),
          c: { type: "object" },
        },
        "a b c",
      ),
    ],
    [
      "Partial and Readonly",
      "(args: Readonly<{ a: Partial<{ b: string }> }>)",
      object({ a: object({ b: string }) }, "a"),
    ],
    [
      "what JSON does not have",
      "(args: { a: Date; b: bigint; c: () => void; d: Map<string, string>; e: typeof x })",
      object({ a: {}, b: {}, c: {}, d: {}, e: {} }, "a b c d e"),
    ],
    [
      "comments of members",
      "(args: { /** How many. */ a: number; // not told\n b: string })",
      object({ a: { ...number, description: "How many." }, b: string }, "a b"),
    ],
    [
      "defaults",
      `({ a = 5, b = "x", c = [1], d = -1, e = {}, f = other() }: Args)`,
      object(
        {
          a: { ...number, default: 5 },
          b: { ...string, default: "x" },
          c: { default: [1] },
          d: { default: -1 },
          e: { default: {} },
          f: {},
        },
        "f",
      ),
      "interface Args { a: number; b: string; c: unknown; d: unknown; e: unknown; f: unknown }",
    ],
    [
      "an interface with another one",
      "(args: Args)",
      object({ a: string, b: { $ref: "#/$defs/Inner", description: "Inside." } }, "a b", {
        $defs: { Inner: object({ c: number }, "c", { description: "An inner one." }) },
      }),
      `interface Base { a: string }
       /** An inner one. */
       interface Inner { c: number }
       export interface Args extends Base, Foreign { /** Inside. */ b: Inner }`,
    ],
    [
      "a type that has itself",
      "(args: Args)",
      object({ tree: { $ref: "#/$defs/Tree" } }, "tree", {
        $defs: { Tree: object({ next: { type: "array", items: { $ref: "#/$defs/Tree" } } }) },
      }),
      "type Args = { tree: Tree }; type Tree = { next?: Tree[] }",
    ],
    [
      "an intersection",
      "(args: { a: string } & Args & Foreign)",
      object({ a: string, b: number }, "a b"),
      "type Args = { b: number }",
    ],
    ["a generic type", "(args: Args<string>)", undefined, "type Args<T> = { a: T }"],
    ["a class", "(args: Args)", undefined, "class Args { a = 1 }"],
  ])("%s", async ([, args, parameters, before = ""]) => {
    const found = await inSource(`${before}\nexport async function tool${args} { return {}; }`);
    expect(found.parameters).toEqual(parameters);
  });
});

describe("the function", () => {
  const parameters = object({ a: string }, "a");
  test.for([
    ["a constant", "/** Does it. */ export const tool = async (args: { a: string }) => {};"],
    [
      "a function expression",
      "/** Does it. */ export const tool = function (args: { a: string }) {};",
    ],
    ["a typed constant", "/** Does it. */ export const tool: Tool<{ a: string }> = (args) => {};"],
    [
      "one that satisfies a type",
      "/** Does it. */ export const tool = ((args: { a: string }) => {}) satisfies Tool;",
    ],
    [
      "one that is exported later",
      "/** Does it. */ function other(args: { a: string }) {}\nexport { other as tool };",
    ],
  ])("as %s", async ([, source = ""]) => {
    expect(await inSource(source)).toMatchObject({ description: "Does it.", parameters });
  });

  test.for([
    ["made by a call", "export const tool = wrap((args: { a: string }) => {});"],
    ["of another module", 'export { tool } from "./other.ts";'],
    ["that is not there", "export function other(args: { a: string }) {}"],
  ])("%s is not known", async ([, source = ""]) => {
    expect(await inSource(source)).toEqual({});
  });
});

describe("the parameters of JSDoc", () => {
  type Doc = [what: string, tags: string, args: string, parameters: object | undefined];
  test.for<Doc>([
    [
      "an inline type",
      "@param {{ from?: number, to: string }} args",
      "{ from = 5, to }",
      object({ from: { ...number, default: 5 }, to: string }, "to"),
    ],
    [
      "a parameter for each member",
      "@param {object} args\n * @param {string} args.a - The first.\n * @param {number} [args.b=3] Of\n *   them.",
      "args",
      object({
        a: { ...string, description: "The first." },
        b: { ...number, description: "Of them." },
      }),
    ],
    [
      "parameters that may be left out",
      "@param {string=} args.a\n * @param {number | undefined} args.b\n * @param {'c' | 'd'} args.c",
      "args",
      object({ a: string, b: number, c: { ...string, enum: ["c", "d"] } }),
    ],
    [
      "a type that says more than the tags",
      "@param {{ a: string }} args\n * @param {string} args.a - The first.\n * @param {number} args.b",
      "args",
      object({ a: { ...string, description: "The first." }, b: number }, "a"),
    ],
    [
      "a typedef",
      "@typedef {{ a: string }} Args\n */\n/**\n * @param {Args} args",
      "args",
      object({ a: string }, "a"),
    ],
    ["a type of Closure's", "@param {?string} args", "args", undefined],
    ["names alone", "", "{ a, b = 2, ...rest }", object({ a: {}, b: { default: 2 } })],
  ])("%s", async ([, tags, args, parameters]) => {
    const source = `/**\n * Finds {@link things}, in\n * places.\n *\n * More.\n *\n * ${tags}\n */\nexport function tool(${args}) {}`;
    expect((await inSource(source, "js")).parameters).toEqual(parameters);
  });

  test("the description is the first paragraph", async () => {
    const source =
      "/**\n * Finds {@link things}, in\n * places.\n *\n * More.\n */\nexport function tool() {}";
    expect((await inSource(source, "js")).description).toBe("Finds things, in places.");
  });
});

describe("the result", () => {
  const asText = (text: object) =>
    object({ text, data_objects: { type: "array" } }, "text data_objects");
  const numberOrNull = { anyOf: [number, nothing] };
  test.for<[type: string, result: object | undefined]>([
    ["object", { type: "object" }],
    [
      "{ a: number; b?: Date; c: string[] }",
      object({ a: numberOrNull, b: string, c: { type: "array", items: string } }, "a c"),
    ],
    ["Promise<Row>", object({ a: string }, "a")],
    ["Promise<Record<string, string>>", { type: "object", additionalProperties: string }],
    ["string", asText(string as object)],
    ["Promise<string[]>", asText(string as object)],
    ["Promise<void>", asText(nothing as object)],
    ["null", asText(nothing as object)],
    ["unknown", undefined],
    ["Foreign", undefined],
    ["Row | string", undefined],
  ])("of type %s", async ([type, result]) => {
    const { result: found } = await inSource(
      `interface Row { a: string }\nexport function tool(): ${type} {}`,
    );
    expect(found).toEqual(result);
  });
});

describe("members of the function", () => {
  const call = { module: "tool.ts", function: "tool", tools_dir: "" };

  async function described(members: object) {
    await writeFile(join(directory, "tool.ts"), "/** In its source. */ export function tool() {}");
    const tool = Object.assign(() => undefined, members);
    return descriptionOf(tool, { ...call, tools_dir: directory });
  }

  test("go before what the source says", async () => {
    const parameters: Schema = object({ a: { type: "string" } }, "a");
    const members = { description: "In words.", parameters, result: { type: "object" } };
    expect(await described({ ...members, config: parameters })).toEqual({
      ...members,
      config: parameters,
    });
  });

  test("may be schemas of zod", async () => {
    const parameters = z.object({
      city: z.string().describe("Where"),
      days: z.int().max(7).default(3),
      at: z.date().optional(),
    });
    expect((await described({ parameters })).parameters).toEqual(
      object(
        {
          city: { ...string, description: "Where" },
          days: { type: "integer", minimum: Number.MIN_SAFE_INTEGER, maximum: 7, default: 3 },
          at: {},
        },
        "city",
      ),
    );
  });

  test("may be schemas of Standard JSON Schema", async () => {
    const jsonSchema = { input: () => ({ $schema: "x", type: "object" }), output: () => ({}) };
    const parameters = { "~standard": { version: 1, vendor: "x", jsonSchema } };
    expect((await described({ parameters })).parameters).toEqual({ type: "object" });
  });

  test("that are something else are ignored", async () => {
    expect(await described({ description: 5, parameters: "a", result: null })).toEqual({
      description: "In its source.",
      parameters: object({}),
    });
  });
});

test("the runner describes, and calls nothing", async () => {
  const run = await runTool("described.js", "ends", { members: { describe: true } });
  expect(run).toMatchObject({ exitCode: 0, stderr: "" });
  expect(run.document).toEqual({
    result: { description: "Never to be called.", parameters: object({ a: number }, "a") },
    outputs: {},
  });
  const raising = await runTool("described.js", "raises", { members: { describe: true } });
  expect(raising.document).toMatchObject({ error_code: "EXECUTION_ERROR" });
});
