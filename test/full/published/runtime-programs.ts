/**
 * Programs of users of `secure-tool-runtime/runtime`.
 */

/** Prints what executions came to, as a line of JSON. A backend that is new belongs here. */
export const runtimeProgram = `
import {
  type ExecuteRequest,
  type ExecuteResult,
  type FunctionTool,
  type JsonObject,
  Runtime,
  type RuntimeBackend,
  RuntimeError,
  type RuntimeErrorCode,
  type ToolGateway,
  createFunctionGateway,
  defineBackend,
  openBubblewrap,
  openWasm,
} from "secure-tool-runtime/runtime";

// @ts-expect-error a time is a number
export const wrong: Pick<ExecuteRequest, "timeoutMs"> = { timeoutMs: "5" };

const add: FunctionTool = {
  id: "math:add",
  description: "Adds two numbers",
  run: ({ a, b }: JsonObject) => ({ sum: Number(a) + Number(b) }),
};
const gateway: ToolGateway = createFunctionGateway([add]);

await using bubblewrap: RuntimeBackend = await openBubblewrap();
const own: RuntimeBackend = defineBackend({
  ...{ kind: "own", languages: ["javascript"], readiness: "stub", details: {}, evidence: {} },
  run: async ({ code }) => ({ value: code.length, stdout: "", stderr: "" }),
});
await using wasm: RuntimeBackend = await openWasm();
const backends = { standard: bubblewrap, dev: own };
const runtime = new Runtime({ backends, defaultProfile: "standard" });

const run = async (request: Omit<ExecuteRequest, "gateway">): Promise<JsonObject> => {
  try {
    const { value, backend, toolCalls }: ExecuteResult = await runtime.execute({ ...request, gateway });
    return { value, backend: backend.kind, calls: toolCalls.map(({ toolId }) => toolId) };
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    const code: RuntimeErrorCode = error.code;
    return { code, op: error.op, stdout: error.partial?.stdout ?? "" };
  }
};

const python = '__out = (await tools.math.add(a=1, b=2))["sum"]';
const javascript = "__out = (await tools.math.add({ a: 3, b: 4 })).sum";
console.log(JSON.stringify([
  await run({ code: python, language: "python" }),
  await run({ code: javascript, language: "javascript" }),
  await run({ code: 'print("so far")\\nraise ValueError()', language: "python" }),
  await run({ code: "1", profile: "hardened" }),
  await run({ code: "four", profile: "dev" }),
  (runtime.registerBackend("hardened", wasm), await run({ code: javascript, profile: "hardened" })),
]));
`;

/** What it prints. */
export const runtimeResults = [
  { value: 3, backend: "bubblewrap", calls: ["math:add"] },
  { value: 7, backend: "bubblewrap", calls: ["math:add"] },
  { code: "EXECUTION_FAILED", op: "execute", stdout: "so far\n" },
  { code: "RUNTIME_UNAVAILABLE", op: "select", stdout: "" },
  { value: 4, backend: "own", calls: [] },
  { value: 7, backend: "wasm", calls: ["math:add"] },
];

/** What TypeScript is told by authors who leave out no check, with few libraries. */
export const strictConfig = {
  compilerOptions: {
    ...{ target: "es2024", lib: ["es2024", "esnext.disposable"], module: "nodenext" },
    ...{ types: ["node"], noEmit: true, strict: true, skipLibCheck: false },
    ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
    ...{ noPropertyAccessFromIndexSignature: true, verbatimModuleSyntax: true },
    allowImportingTsExtensions: true,
  },
};
