/**
 * Python stubs of tools, for the authors of programs.
 */
import type { CatalogTool } from "../catalog.ts";
import { type ObjectShape, type Shape, anyObject, objectShapeOf } from "./shapes.ts";
import { pythonGlobals, pythonImports, pythonMembers } from "./python-members.ts";
import {
  BoundedText,
  type StubOptions,
  maxStubBytes,
  quoted as quotedBy,
  stubTitle,
} from "./text.ts";

const head = `# ${stubTitle}
${pythonImports}`;
const anyCall = `    @overload
    async def call(self, tool: str, args: dict[str, Any] = ...) -> dict[str, Any]: ...`;

/** Bytes of what is around the tools, and of a namespace's own lines. */
const frameBytes = 1_024 + Buffer.byteLength(pythonImports + pythonMembers + pythonGlobals);
const namespaceBytes = 320;

/** Members that the runner's object of the tools has itself. */
const reserved: ReadonlySet<string> = new Set([
  ...["call", "search", "describe", "namespaces", "examples", "chain", "load_artifact", "sync"],
]);
const keywords: ReadonlySet<string> = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except " +
    "finally for from global if import in is lambda nonlocal not or pass raise return self try " +
    "while with yield"
  ).split(" "),
);

/** What a tool adds: the types of its objects, and two ways to call it. */
interface Declaration {
  readonly types: readonly string[];
  readonly overload: string;
  /** Undefined where only `call` reaches the tool. */
  readonly method: string | undefined;
}

/**
 * A `.pyi` of at most `maxStubBytes`. Tools that do not fit lose their types, then their place; a
 * comment counts them.
 */
export function pythonStubs(
  tools: Iterable<CatalogTool>,
  { forPrograms = false }: StubOptions = {},
): string {
  const text = new BoundedText(maxStubBytes - frameBytes);
  const types: string[] = [];
  const overloads: string[] = [];
  const methods = new Map<string, string[]>();
  let [index, left] = [0, 0];
  for (const tool of tools) {
    const { namespace } = tool.summary();
    const overhead = methods.has(namespace) ? "" : " ".repeat(namespaceBytes);
    const candidates = [declare(tool, ++index), declareBare(tool, index)];
    const declared = candidates.find((one) =>
      text.fits(...one.types, one.overload, one.method ?? "", overhead),
    );
    if (declared === undefined) {
      left++;
      continue;
    }
    types.push(...declared.types);
    overloads.push(declared.overload);
    const ofNamespace = methods.get(namespace) ?? [];
    methods.set(namespace, ofNamespace.concat(declared.method ?? []));
  }
  const namespaces = [...methods].filter(
    ([name, some]) => isToolName(name) && !reserved.has(name) && some.length > 0,
  );
  const names = new Set([...namespaces.map(([name]) => name), ...reserved]);
  const own = (methods.get("") ?? []).filter((method) => !names.has(methodName(method)));
  const more = left === 0 ? [] : [`# ${left} more tools do not fit: search for them.`, ""];
  const attributes = namespaces.map(([name]) => `    ${name}: _${name}_tools`);
  return [
    head,
    ...types,
    pythonMembers,
    ...namespaces.flatMap(([name, some]) => [`class _${name}_tools(Protocol):`, ...some, ""]),
    ...["class Tools(ToolMethods, Protocol):", ...attributes, ...own, ...overloads, anyCall, ""],
    "tools: Tools",
    forPrograms ? pythonGlobals : "",
    ...more,
  ].join("\n");
}

function declare(tool: CatalogTool, index: number): Declaration {
  const { parameters, returns } = tool.entry;
  return declaration(tool, index, objectShapeOf(parameters), objectShapeOf(returns));
}

function declareBare(tool: CatalogTool, index: number): Declaration {
  return declaration(tool, index, anyObject, anyObject);
}

function declaration(
  tool: CatalogTool,
  index: number,
  args: ObjectShape,
  result: ObjectShape,
): Declaration {
  const { id, name, shortDescription } = tool.summary();
  const types = new Types(index);
  const returned = types.of(result);
  const taken = types.of(args);
  const note = shortDescription === "" ? [] : [`        ${quoted(shortDescription)}`];
  const parameters = keywordsOf(args, types);
  const method = [`    async def ${name}(${parameters}) -> ${returned}:`, ...note, "        ..."];
  return {
    overload: `    @overload\n    async def call(self, tool: Literal[${quoted(id)}], args: ${taken}) -> ${returned}: ...`,
    method: isToolName(name) ? method.join("\n") : undefined,
    types: types.declared,
  };
}

/** The parameters of a method; names that Python does not have are in the rest. */
function keywordsOf({ members, others }: ObjectShape, types: Types): string {
  const named = members.filter(({ name }) => isName(name));
  const isOpen = others !== undefined || named.length < members.length;
  const parameters = named.map(
    ({ name, isOptional, shape }) => `${name}: ${types.of(shape)}${isOptional ? " = ..." : ""}`,
  );
  return [
    "self",
    ...(named.length > 0 ? ["*"] : []),
    ...parameters,
    ...(isOpen ? ["**__rest: Any"] : []),
  ].join(", ");
}

/** The types of a tool; those of objects are declared. */
class Types {
  readonly declared: string[] = [];
  readonly #prefix: string;
  readonly #names = new Map<Shape, string>();

  constructor(index: number) {
    this.#prefix = `_T${index}_`;
  }

  of(shape: Shape): string {
    switch (shape.kind) {
      case "any":
      case "never":
      case "all":
        return "Any";
      case "literal":
        return literal(shape.value);
      case "primitive":
        return primitives[shape.type];
      case "list":
        return `list[${this.of(shape.items)}]`;
      case "union":
        return [...new Set(shape.shapes.map((one) => this.of(one)))].join(" | ");
      case "object":
        return this.#object(shape);
    }
  }

  #object(shape: ObjectShape): string {
    const { members, others } = shape;
    if (members.length === 0) return `dict[str, ${others ? this.of(others) : "Any"}]`;
    const known = this.#names.get(shape);
    if (known !== undefined) return known;
    const fields = members.map(({ name, isOptional, shape: member }) => {
      const type = this.of(member);
      return `${quoted(name)}: ${isOptional ? `NotRequired[${type}]` : type}`;
    });
    const name = `${this.#prefix}${this.declared.length + 1}`;
    this.#names.set(shape, name);
    this.declared.push(`${name} = TypedDict("${name}", {${fields.join(", ")}})`);
    return name;
  }
}

const primitives = {
  ...{ string: "str", number: "float", integer: "int", boolean: "bool", null: "None" },
};

function literal(value: string | number | boolean | null): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "Literal[True]" : "Literal[False]";
  if (typeof value === "string") return `Literal[${quoted(value)}]`;
  return Number.isSafeInteger(value) ? `Literal[${value}]` : "float";
}

function methodName(method: string): string {
  return /^ *async def (\w+)\(/.exec(method)?.[1] ?? "";
}

/** Whether a text names something in Python; names with two underscores mean more. */
function isName(text: string): boolean {
  return /^[A-Za-z_]\w*$/.test(text) && !text.startsWith("__") && !keywords.has(text);
}

/** Whether the runner takes an attribute for a tool or a namespace. */
function isToolName(text: string): boolean {
  return isName(text) && !text.startsWith("_");
}

function quoted(text: string): string {
  return quotedBy(text, (codePoint) => `\\U${codePoint.toString(16).padStart(8, "0")}`);
}
