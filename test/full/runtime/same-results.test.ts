/**
 * Programs have the same results in every backend as in bubblewrap.
 *
 * @module-tag full
 */
import { describe, expect, test } from "vitest";
import type { RuntimeBackend } from "../../../worker/runtime/api/backend.ts";
import { GatewayError, createFunctionGateway } from "../../../worker/runtime.ts";
import { openers } from "../../support/runtime/opened-backends.ts";
import { shared } from "../../support/shared.ts";

const javascript = `
const found = await tools.search("sales");
const { summary } = await tools.describe("sales:query");
const regions = ["West", "Ost ü😀", "North"];
const answers = await Promise.all(regions.map((region) => tools.sales.query({ region })));
const { total, of } = await tools.chain([
  { tool: "sales:query", args: { region: regions[1] } },
  { tool: "sales:total", usePrevious: true },
]);
let caught;
try {
  await tools.call("sales:close", { region: "West" });
} catch (error) {
  caught = { code: error.code, isNamed: error.message.includes("not yet") };
}
console.log("rows ü", answers.length);
console.error("done");
const rows = answers.map(({ rows: [row] }) => row);
__out = { found: found.map(({ id }) => id).sort(), summary, rows, total, of, caught, half: 0.5 };
`;

const python = `
import asyncio, sys

found = await tools.search("sales")
summary = (await tools.describe("sales:query"))["summary"]
regions = ["West", "Ost ü😀", "North"]
answers = await asyncio.gather(*(tools.sales.query(region=region) for region in regions))
last = await tools.chain([
    {"tool": "sales:query", "args": {"region": regions[1]}},
    {"tool": "sales:total", "use_previous": True},
])
caught = None
try:
    await tools.call("sales:close", {"region": "West"})
except Exception as error:
    caught = {"code": error.code, "isNamed": "not yet" in str(error)}
print("rows ü", len(answers))
print("done", file=sys.stderr)
__out = {
    "found": sorted(each["id"] for each in found),
    "summary": summary,
    "rows": [answer["rows"][0] for answer in answers],
    "total": last["total"],
    "of": last["of"],
    "caught": caught,
    "half": 0.5,
}
`;

const expected = {
  value: {
    found: ["sales:close", "sales:query", "sales:total"],
    summary: "Sales of a region",
    rows: [
      { region: "West", amount: 4 },
      { region: "Ost ü😀", amount: 7 },
      { region: "North", amount: 5 },
    ],
    ...{ total: 7, of: "Ost ü😀", half: 0.5 },
    caught: { code: "TOOL_ERROR", isNamed: true },
  },
  ...{ stdout: "rows ü 3\n", stderr: "done\n" },
  toolCalls: [
    ...Array<object>(4).fill({ toolId: "sales:query", errorOp: undefined }),
    { toolId: "sales:total", errorOp: undefined },
    { toolId: "sales:close", errorOp: "execute" },
  ],
};

interface Sale {
  readonly region: string;
  readonly amount: number;
}

const gateway = createFunctionGateway([
  {
    ...{ id: "sales:query", description: "Sales of a region" },
    run: ({ region }) => {
      const name = region as string;
      return { rows: [{ region: name, amount: name.length }] };
    },
  },
  {
    ...{ id: "sales:total", description: "Adds sales up" },
    run: ({ previous }) => {
      const { rows } = previous as unknown as { readonly rows: readonly Sale[] };
      const [first] = rows;
      return { total: rows.reduce((sum, { amount }) => sum + amount, 0), of: first?.region ?? "" };
    },
  },
  {
    ...{ id: "sales:close", description: "Closes sales" },
    run: () => {
      throw new GatewayError("TOOL_ERROR", "execute", "not yet");
    },
  },
]);

async function resultOf(backend: RuntimeBackend, code: string, language: string) {
  const result = await backend.execute({ code, language, gateway });
  const { value, stdout, stderr } = result;
  const toolCalls = result.toolCalls.map(({ toolId, errorOp }) => ({ toolId, errorOp }));
  return { value, stdout, stderr, toolCalls };
}

const inPython = ["docker", "containerd", "gvisor", "remote"] as const;
const kinds = ["bubblewrap", ...inPython, "wasm"] as const;
const entries = kinds.map((kind) => [kind, shared<RuntimeBackend>(openers[kind])] as const);
const backends = Object.fromEntries(entries) as Record<
  (typeof kinds)[number],
  (typeof entries)[number][1]
>;

describe.each([
  { language: "python", code: python, others: inPython },
  { language: "javascript", code: javascript, others: [...inPython, "wasm"] as const },
])("a program in $language", ({ language, code, others }) => {
  test("has its result in bubblewrap", async (context) => {
    const result = await resultOf(await backends.bubblewrap(context), code, language);
    expect(result).toStrictEqual(expected);
  });

  test.for(others)("has the same result in %s", async (kind, context) => {
    const backend = await backends[kind](context);
    const inBubblewrap = await resultOf(await backends.bubblewrap(context), code, language);
    expect(await resultOf(backend, code, language)).toStrictEqual(inBubblewrap);
  });
});
