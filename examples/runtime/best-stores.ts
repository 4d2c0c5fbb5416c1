/**
 * Runs code that an agent's model might write, with two functions of this program as its tools.
 */
import {
  Runtime,
  RuntimeError,
  createFunctionGateway,
  openBubblewrap,
} from "secure-tool-runtime/runtime";

const salesByStore: Readonly<Record<string, readonly number[]>> = {
  Basel: [310, 290, 340],
  Bern: [420, 380, 450],
  Zug: [510, 470, 520],
};

const gateway = createFunctionGateway([
  {
    id: "sales:stores",
    description: "Names of all stores.",
    run: () => ({ stores: Object.keys(salesByStore) }),
  },
  {
    id: "sales:months",
    description: "Sales of a store by month.",
    parameters: { type: "object", properties: { store: { type: "string" } }, required: ["store"] },
    run: ({ store }) => ({ sales: (typeof store === "string" && salesByStore[store]) || [] }),
  },
]);

const code = `
totals = {}
for store in (await tools.sales.stores())["stores"]:
    totals[store] = sum((await tools.sales.months(store=store))["sales"])
print(f"{len(totals)} stores")
max(totals, key=totals.get)
`;

await using bubblewrap = await openBubblewrap({ languages: ["python"] });
const runtime = new Runtime({ backends: { standard: bubblewrap }, defaultProfile: "standard" });

const { value, stdout, toolCalls } = await runtime.execute({ code, gateway });
console.log({ value, stdout, calls: toolCalls.map(({ toolId }) => toolId) });

try {
  await runtime.execute({ code: "while True: pass", gateway, timeoutMs: 500 });
} catch (error) {
  if (!(error instanceof RuntimeError)) throw error;
  console.log({ code: error.code, retryable: error.retryable });
}
