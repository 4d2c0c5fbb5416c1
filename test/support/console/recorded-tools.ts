/** Tools as a worker shows them, with schemas of every shape that forms are made of. */
import type { JsonMembers, ToolView } from "../../../worker/console/api.ts";

/** Text that would run if a page took it for markup. */
export const hostileText = `<img src=x onerror="document.title='owned'"> </script><b>bold</b>`;

const common = {
  runtime: "python",
  artifacts: [],
  problem: null,
  profile: "standard",
  queue: "sandbox/default",
  startMode: "pool",
  timeoutSeconds: 30,
  isIdempotent: true,
} as const;

/** One parameter of each kind. */
export const everyKind: JsonMembers = {
  type: "object",
  required: ["name", "count", "mode", "shape", "ratio"],
  properties: {
    name: { type: "string", description: "Who asks.", maxLength: 40 },
    count: { type: "integer", minimum: 1, maximum: 10, default: 3 },
    ratio: { type: "number", exclusiveMinimum: 0, maximum: 1 },
    mode: { enum: ["fast", "exact"], description: "How to count." },
    version: { const: 2 },
    loud: { type: "boolean", default: false },
    maybe: { type: "boolean", description: hostileText },
    text: { type: "string", description: "Several lines." },
    day: { type: "string", format: "date" },
    mail: { type: "string", format: "email" },
    code: { type: "string", pattern: "^[A-Z]{3}$" },
    note: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    tags: { type: "array", items: { type: "string" }, maxItems: 3 },
    shape: { oneOf: [{ $ref: "#/$defs/Circle" }, { $ref: "#/$defs/Square" }] },
    tree: { $ref: "#/$defs/Tree" },
    options: { type: "object", additionalProperties: { type: "string" } },
  },
  $defs: {
    Circle: {
      title: "Circle",
      type: "object",
      required: ["radius"],
      properties: { radius: { type: "number", minimum: 0 } },
    },
    Square: {
      title: "Square",
      type: "object",
      required: ["side"],
      properties: { side: { type: "number", minimum: 0 } },
    },
    Tree: {
      type: "object",
      required: ["label"],
      properties: {
        label: { type: "string" },
        children: { type: "array", items: { $ref: "#/$defs/Tree" } },
      },
    },
  },
};

export const recordedTools: readonly ToolView[] = [
  {
    ...common,
    name: "echo_tool",
    description: "Returns its arguments.\nUseful to see that everything works.",
    parameters: {
      type: "object",
      required: ["message"],
      properties: {
        message: { type: "string", description: "What to return." },
        times: { type: "integer", minimum: 1, maximum: 5, default: 1 },
      },
    },
  },
  {
    ...common,
    name: "every_kind",
    description: `Takes one argument of each kind. ${hostileText}`,
    parameters: everyKind,
    startMode: "template",
  },
  {
    ...common,
    name: "process_file",
    description: "Counts the words of a report, and of more files.",
    parameters: {
      type: "object",
      required: ["input_file", "language"],
      properties: {
        input_file: { type: "string" },
        more: { type: "array", items: { type: "string" } },
        language: { enum: ["de", "en"] },
      },
    },
    artifacts: [
      { name: "input_file", isList: false, isOptional: false },
      { name: "more", isList: true, isOptional: true },
    ],
    isIdempotent: false,
  },
  {
    ...common,
    name: "slow_tool",
    description: "Tells what it does while it runs.",
    parameters: { type: "object", properties: {} },
    profile: "restrictive",
    startMode: "cold",
  },
  {
    ...common,
    name: "undescribed",
    runtime: "executable",
    description: null,
    parameters: null,
    problem: "The executable printed no description within 10 s.",
    profile: null,
  },
];
