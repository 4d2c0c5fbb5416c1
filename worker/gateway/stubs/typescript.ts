/**
 * TypeScript declarations of tools, for the authors of programs.
 */
import type { CatalogTool } from "../catalog.ts";
import { type Member, type ObjectShape, type Shape, anyObject, objectShapeOf } from "./shapes.ts";
import {
  BoundedText,
  type StubOptions,
  commentLines,
  maxStubBytes,
  quoted as quotedBy,
  stubTitle,
} from "./text.ts";
import { typescriptGlobals, typescriptMembers } from "./typescript-members.ts";

const head = `// ${stubTitle}

${typescriptMembers}`;
const call = `  /** Calls a tool by its id. */
  call<Id extends keyof ToolArguments>(
    id: Id,
    args: ToolArguments[Id],
    options?: CallOptions,
  ): Promise<ToolResults[Id]>;`;

/** Bytes of what is around the tools, and of a namespace's own lines. */
const frameBytes = 1_024 + Buffer.byteLength(typescriptMembers + typescriptGlobals);
const namespaceBytes = 160;

/** Members that the runner's object of the tools has itself. */
const reserved: ReadonlySet<string> = new Set([
  ...["call", "search", "describe", "namespaces", "examples", "chain", "loadArtifact"],
  ...["artifactsOf", "stepResultsOf"],
]);
/** Names that the runner takes for no tool: of promises, of JSON, and of every object. */
const noTools: ReadonlySet<string> = new Set([
  ...["then", "toJSON"],
  ...Object.getOwnPropertyNames(Object.prototype),
]);

/** What a tool adds to the three interfaces. */
interface Declaration {
  readonly args: string;
  readonly result: string;
  /** Undefined where only `call` reaches the tool. */
  readonly method: string | undefined;
}

/**
 * A `.d.ts` of at most `maxStubBytes`. Tools that do not fit lose their types, then their place; a
 * comment counts them.
 */
export function typescriptStubs(
  tools: Iterable<CatalogTool>,
  { forPrograms = false }: StubOptions = {},
): string {
  const text = new BoundedText(maxStubBytes - frameBytes);
  const args: string[] = [];
  const results: string[] = [];
  const methods = new Map<string, string[]>();
  let left = 0;
  for (const tool of tools) {
    const { namespace } = tool.summary();
    const overhead = methods.has(namespace) ? "" : " ".repeat(namespaceBytes);
    const declared = [declare(tool), declareBare(tool)].find((one) =>
      text.fits(one.args, one.result, one.method ?? "", overhead),
    );
    if (declared === undefined) {
      left++;
      continue;
    }
    args.push(declared.args);
    results.push(declared.result);
    methods.set(namespace, (methods.get(namespace) ?? []).concat(declared.method ?? []));
  }
  const more = left === 0 ? [] : [`// ${left} more tools do not fit: search for them.`, ""];
  return [
    head,
    ...interfaceOf("ToolArguments", args),
    ...interfaceOf("ToolResults", results),
    ...interfaceOf("Tools extends ToolMethods", [call, ...membersOf(methods)]),
    ...(forPrograms ? [typescriptGlobals] : []),
    ...more,
  ].join("\n");
}

function interfaceOf(name: string, members: readonly string[]): readonly string[] {
  return [`export interface ${name} {`, ...members, "}", ""];
}

/** The methods by namespace; where a name has two meanings, `call` is left. */
function membersOf(methods: ReadonlyMap<string, readonly string[]>): readonly string[] {
  return [...methods].flatMap(([namespace, some]) => {
    if (namespace === "") {
      const names = [...methods.keys(), ...reserved].map((name) => `  ${nameOf(name)}(`);
      return some.filter((method) => !names.some((name) => method.startsWith(name)));
    }
    return reserved.has(namespace) || noTools.has(namespace)
      ? []
      : [`  readonly ${nameOf(namespace)}: {`, ...some.map((method) => `  ${method}`), "  };"];
  });
}

function declare(tool: CatalogTool): Declaration {
  const { parameters, returns } = tool.entry;
  const lines = commentLines(tool.notes()).map((line) => `   * ${line}`.trimEnd());
  const comment = lines.length === 1 && lines[0] === "   *" ? [] : ["  /**", ...lines, "   */"];
  const { args, ...rest } = declaration(tool, objectShapeOf(parameters), objectShapeOf(returns));
  return { ...rest, args: [...comment, args].join("\n") };
}

function declareBare(tool: CatalogTool): Declaration {
  return declaration(tool, anyObject, anyObject);
}

function declaration(tool: CatalogTool, args: ObjectShape, result: ObjectShape): Declaration {
  const { id: plainId, name } = tool.summary();
  const id = quoted(plainId);
  const parameters = `args: ToolArguments[${id}], options?: CallOptions`;
  const method = `  ${nameOf(name)}(${parameters}): Promise<ToolResults[${id}]>;`;
  return {
    args: `  ${id}: ${typeOf(args)};`,
    result: `  ${id}: ${typeOf(result)};`,
    method: noTools.has(name) ? undefined : method,
  };
}

function typeOf(shape: Shape): string {
  switch (shape.kind) {
    case "any":
      return "unknown";
    case "never":
      return "never";
    case "literal":
      return typeof shape.value === "string" ? quoted(shape.value) : String(shape.value);
    case "primitive":
      return shape.type === "integer" ? "number" : shape.type;
    case "list":
      return `Array<${typeOf(shape.items)}>`;
    case "union":
    case "all": {
      const separator = shape.kind === "union" ? " | " : " & ";
      return shape.shapes.length === 0
        ? "unknown"
        : `(${shape.shapes.map(typeOf).join(separator)})`;
    }
    case "object":
      return objectType(shape);
  }
}

function objectType({ members, others }: ObjectShape): string {
  if (members.length === 0) return `Record<string, ${others ? typeOf(others) : "never"}>`;
  // Members of other types than the rest would not compile.
  const rest = others ? [" [name: string]: unknown;"] : [];
  return `{${[...members.map(memberOf), ...rest].join("")} }`;
}

function memberOf({ name, isOptional, shape }: Member): string {
  return ` ${nameOf(name)}${isOptional ? "?" : ""}: ${typeOf(shape)};`;
}

/** A name of a member, without quotes where it needs none: `new(…)` would be another thing. */
function nameOf(text: string): string {
  return /^(?!(?:new|constructor)$)[A-Za-z_]\w*$/.test(text) ? text : quoted(text);
}

function quoted(text: string): string {
  return quotedBy(text, (codePoint) => `\\u{${codePoint.toString(16)}}`);
}
