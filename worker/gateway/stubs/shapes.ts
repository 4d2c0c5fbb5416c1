/**
 * What the values of a JSON Schema look like, for stubs in any language.
 *
 * Schemas come from tools, and references in them can expand without end: shapes are bounded, and
 * read nothing outside of their schema.
 */
import { resolveRef, sizeProblem } from "../../protocol/discovery/schema-problems.ts";
import { type Json, type JsonObject, isJsonObject } from "../../support/json/json.ts";

/** Levels of a shape, and parts of all levels together; what is beyond them is `any`. */
const maxDepth = 10;
const maxParts = 400;

export type Literal = string | number | boolean | null;
export type Primitive = "string" | "number" | "integer" | "boolean" | "null";

/** The look of a value. */
export type Shape =
  | { readonly kind: "any" }
  | { readonly kind: "never" }
  | { readonly kind: "literal"; readonly value: Literal }
  | { readonly kind: "primitive"; readonly type: Primitive }
  | { readonly kind: "list"; readonly items: Shape }
  | ObjectShape
  | { readonly kind: "union" | "all"; readonly shapes: readonly Shape[] };

export interface ObjectShape {
  readonly kind: "object";
  readonly members: readonly Member[];
  /** The look of other members; undefined where there are none. */
  readonly others: Shape | undefined;
}

export interface Member {
  readonly name: string;
  readonly isOptional: boolean;
  readonly shape: Shape;
}

const any: Shape = { kind: "any" };
const never: Shape = { kind: "never" };

/** An object of which nothing is known. */
export const anyObject: ObjectShape = { kind: "object", members: [], others: any };

/** The shape of a schema. `any` where it says nothing that can be shown. */
export function shapeOf(schema: JsonObject): Shape {
  return sizeProblem(schema) === undefined ? new Expansion(schema).shape(schema, 0) : any;
}

/** The shape of a schema of an object. */
export function objectShapeOf(schema: JsonObject | undefined): ObjectShape {
  const shape = schema === undefined ? anyObject : shapeOf(schema);
  return shape.kind === "object" ? shape : anyObject;
}

const primitives: ReadonlySet<unknown> = new Set<Primitive>([
  ...(["string", "number", "integer", "boolean", "null"] as const),
]);

class Expansion {
  readonly #root: JsonObject;
  #parts = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  shape(schema: Json | undefined, depth: number): Shape {
    if (schema === false) return never;
    if (!isJsonObject(schema) || depth > maxDepth || ++this.#parts > maxParts) return any;
    const inner = (each: Json | undefined): Shape => this.shape(each, depth + 1);
    if (schema["$ref"] !== undefined) return inner(resolveRef(this.#root, schema["$ref"]));
    if (schema["const"] !== undefined) return literal(schema["const"]);
    if (isList(schema["enum"])) return union(schema["enum"].map(literal));
    const alternatives = schema["anyOf"] ?? schema["oneOf"];
    if (isList(alternatives)) return union(alternatives.map(inner));
    if (isList(schema["allOf"])) return { kind: "all", shapes: schema["allOf"].map(inner) };
    const type = schema["type"];
    if (isList(type)) return union(type.map((one) => this.#ofType(one, schema, depth)));
    return this.#ofType(type ?? (isJsonObject(schema["properties"]) && "object"), schema, depth);
  }

  #ofType(type: Json, schema: JsonObject, depth: number): Shape {
    if (primitives.has(type)) return { kind: "primitive", type: type as Primitive };
    if (type === "array") return { kind: "list", items: this.shape(schema["items"], depth + 1) };
    return type === "object" ? this.#object(schema, depth) : any;
  }

  #object(schema: JsonObject, depth: number): Shape {
    const { properties, required, additionalProperties } = schema;
    const names = new Set<unknown>(isList(required) ? required : []);
    const members = Object.entries(isJsonObject(properties) ? properties : {});
    if (this.#parts + members.length > maxParts) return anyObject;
    return {
      kind: "object",
      members: members.map(([name, member]) => ({
        ...{ name, isOptional: !names.has(name), shape: this.shape(member, depth + 1) },
      })),
      others: additionalProperties === false ? undefined : this.shape(additionalProperties, depth),
    };
  }
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function literal(value: Json): Shape {
  return typeof value === "object" && value !== null ? any : { kind: "literal", value };
}

function union(shapes: readonly Shape[]): Shape {
  if (shapes.length === 0) return never;
  const [only] = shapes;
  if (shapes.length === 1 && only !== undefined) return only;
  return shapes.some(({ kind }) => kind === "any") ? any : { kind: "union", shapes };
}
