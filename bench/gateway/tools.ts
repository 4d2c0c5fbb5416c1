/**
 * The tools of the gateway's rows: some that call, and some that are called.
 */
import { lightPython, nameOf } from "../tools.ts";

/** Those that call, by their names in the manifest. */
export const callers = {
  Python: { lists: "lists_python", calls: "calls_python" },
  JavaScript: { lists: "lists_javascript", calls: "calls_javascript" },
} as const;

/** The entries for programs: that call no tools, and that may call {@link workTool}. */
export const plainProgramTool = "plain_program";
export const programTool = "program";

/** The tool that sends without end. */
export const floodsTool = "floods";

/** The called tools: one does nothing, one works, one has a long description. */
export const lightTool = nameOf(lightPython);
export const workTool = "works";
export const describedTool = "described";

/** The bounds of a gateway, where a row is not to meet them. */
const most = { max_tool_calls: 1_000, max_lookups: 1_000 };

/** Sandboxes that wait: as many as needed, whatever else is measured. */
const warm = { min: 1, max: 16 };

/** Characters of a description, which its schema repeats. */
const describedLength = 16_384;

const gateway = (tool: string) => ({ gateway: { tools: [tool], ...most } });
const python = { module: "bench_gateway", start: "template", warm } as const;
const program = { runtime: "code", languages: ["python"], start: "template", warm } as const;
const node = { runtime: "node", module: "gateway.js", start: "template", warm } as const;
const called = { allowed_callers: ["direct", "programmatic"] } as const;

/** The manifest's entries of all, by name. */
export const gatewayEntries: Readonly<Record<string, object>> = {
  [callers.Python.lists]: { ...python, function: "lists", ...gateway(lightTool) },
  [callers.Python.calls]: { ...python, function: "calls", ...gateway(lightTool) },
  [callers.JavaScript.lists]: { ...node, function: "lists", ...gateway(lightTool) },
  [callers.JavaScript.calls]: { ...node, function: "calls", ...gateway(lightTool) },
  [plainProgramTool]: program,
  [programTool]: { ...program, ...gateway(workTool) },
  [floodsTool]: { ...python, function: "floods", ...gateway(describedTool) },
  [lightTool]: {
    ...python,
    module: "bench_light",
    function: "nothing",
    // As many as by default: half as many again as the calls of a series are below that.
    warm: { min: 1 },
    ...called,
  },
  [workTool]: { ...python, function: "works", ...called },
  [describedTool]: {
    ...{ ...python, start: "cold", warm: undefined, function: "works", ...called },
    parameters: { type: "object", description: "x".repeat(describedLength) },
  },
};
