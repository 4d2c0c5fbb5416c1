/** What a JSON Schema asks for, one level at a time, as fields of a form. */
import type { JsonMembers, JsonValue } from "../../worker/console/api.ts";
import { isList, isMembers } from "../values/json.ts";
import { flatten } from "./flatten.ts";

interface AnyField {
  readonly title: string | null;
  readonly description: string | null;
  readonly initial: JsonValue | undefined;
  /** Whether null is an answer too. */
  readonly isNullable: boolean;
}

export interface TextField extends AnyField {
  readonly kind: "text";
  readonly format: string | null;
  readonly minLength: number | null;
  readonly maxLength: number | null;
  readonly pattern: string | null;
}

export interface NumberField extends AnyField {
  readonly kind: "number";
  readonly isInteger: boolean;
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly exclusiveMinimum: number | null;
  readonly exclusiveMaximum: number | null;
  readonly multipleOf: number | null;
}

export interface ChoiceField extends AnyField {
  readonly kind: "choice";
  readonly options: readonly { readonly value: JsonValue; readonly label: string }[];
}

export interface ObjectField extends AnyField {
  readonly kind: "object";
  readonly members: readonly Member[];
}

export interface ListField extends AnyField {
  readonly kind: "list";
  readonly item: () => Field;
  readonly minItems: number;
  readonly maxItems: number | null;
}

export interface VariantField extends AnyField {
  readonly kind: "variant";
  readonly variants: readonly { readonly label: string; readonly field: () => Field }[];
}

/** A value without a form: JSON as text. */
export interface JsonField extends AnyField {
  readonly kind: "json";
  /** In words, if the schema tells. */
  readonly expects: string;
}

export type Field =
  | TextField
  | NumberField
  | ChoiceField
  | ObjectField
  | ListField
  | VariantField
  | JsonField
  | (AnyField & { readonly kind: "boolean" });

export interface Member {
  readonly name: string;
  readonly isRequired: boolean;
  /** Read when it is shown: schemas may contain themselves. */
  readonly field: () => Field;
}

/** The field of a schema; `root` is the schema that its references lead into. */
export function fieldOf(schema: JsonValue, root: JsonMembers): Field {
  const flat = flatten(schema, root);
  if (flat === undefined) return { ...commonOf({}), kind: "json", expects: "any JSON" };
  return fieldOfFlat(flat, root);
}

/** The parameters of a tool as members, without those that take files. */
export function parametersOf(
  schema: JsonMembers,
  artifacts: readonly { readonly name: string }[],
): ObjectField | undefined {
  const flat = flatten(schema, schema);
  if (flat === undefined || (!isMembers(flat["properties"]) && flat["type"] !== "object")) {
    return undefined;
  }
  if (flat["anyOf"] !== undefined || flat["oneOf"] !== undefined) return undefined;
  const files = new Set(artifacts.map(({ name }) => name));
  const members = membersOf(flat, schema).filter(({ name }) => !files.has(name));
  return { ...commonOf(flat), kind: "object", members };
}

function fieldOfFlat(flat: JsonMembers, root: JsonMembers): Field {
  const { schema, isNullable } = withoutNull(flat, root);
  const common = { ...commonOf(schema), isNullable };
  if (schema["const"] !== undefined) return choiceOf(common, [schema["const"]]);
  if (isList(schema["enum"])) {
    const values = schema["enum"].filter((value) => value !== null);
    return choiceOf(common, values);
  }
  const variants = schema["anyOf"] ?? schema["oneOf"];
  if (isList(variants)) return variantsOf(common, variants, root);
  const { type } = schema;
  if (isList(type)) {
    const rest = { ...schema, default: undefined, title: undefined, description: undefined };
    const typed = type.map((one) => plain({ ...rest, type: one }));
    return variantsOf(common, typed, root);
  }
  return typedField(common, schema, root);
}

function typedField(common: AnyField, schema: JsonMembers, root: JsonMembers): Field {
  const { items, properties, prefixItems } = schema;
  const isObject = schema["type"] === "object" || schema["type"] === undefined;
  if (isObject && isMembers(properties) && Object.keys(properties).length > 0) {
    return { ...common, kind: "object", members: membersOf(schema, root) };
  }
  switch (schema["type"]) {
    case "string":
      return textOf(common, schema);
    case "number":
    case "integer":
      return numberOf(common, schema);
    case "boolean":
      return { ...common, kind: "boolean" };
    case "null":
      return { ...common, kind: "choice", options: [{ value: null, label: "null" }] };
    case "array":
      if (items === undefined || prefixItems !== undefined || typeof items === "boolean") {
        return { ...common, kind: "json", expects: "a JSON array" };
      }
      return {
        ...common,
        kind: "list",
        item: () => fieldOf(items, root),
        minItems: numberIn(schema, "minItems") ?? 0,
        maxItems: numberIn(schema, "maxItems"),
      };
    case "object":
      return { ...common, kind: "json", expects: "a JSON object" };
    default:
      return { ...common, kind: "json", expects: "any JSON" };
  }
}

function membersOf(schema: JsonMembers, root: JsonMembers): readonly Member[] {
  const properties = isMembers(schema["properties"]) ? schema["properties"] : {};
  const required = isList(schema["required"]) ? schema["required"] : [];
  return Object.entries(properties).map(([name, member]) => ({
    name,
    isRequired: required.includes(name),
    field: () => fieldOf(member, root),
  }));
}

function textOf(common: AnyField, schema: JsonMembers): TextField {
  return {
    ...common,
    kind: "text",
    format: textIn(schema, "format"),
    minLength: numberIn(schema, "minLength"),
    maxLength: numberIn(schema, "maxLength"),
    pattern: textIn(schema, "pattern"),
  };
}

function numberOf(common: AnyField, schema: JsonMembers): NumberField {
  return {
    ...common,
    kind: "number",
    isInteger: schema["type"] === "integer",
    minimum: numberIn(schema, "minimum"),
    maximum: numberIn(schema, "maximum"),
    exclusiveMinimum: numberIn(schema, "exclusiveMinimum"),
    exclusiveMaximum: numberIn(schema, "exclusiveMaximum"),
    multipleOf: numberIn(schema, "multipleOf"),
  };
}

function choiceOf(common: AnyField, values: readonly JsonValue[]): ChoiceField {
  const options = values.map((value) => ({ value, label: labelOf(value) }));
  return { ...common, kind: "choice", options };
}

/** One of several schemas; constants become a choice. */
function variantsOf(common: AnyField, schemas: readonly JsonValue[], root: JsonMembers): Field {
  const flat = schemas.map((schema) => flatten(schema, root));
  const constants = flat.flatMap((schema) => {
    const value = schema?.["const"];
    if (schema === undefined || value === undefined) return [];
    return [{ value, label: textIn(schema, "title") ?? labelOf(value) }];
  });
  if (constants.length === flat.length) return { ...common, kind: "choice", options: constants };
  const variants = schemas.map((schema, index) => ({
    label: variantLabel(flat[index], index),
    field: () => fieldOf(schema, root),
  }));
  return { ...common, kind: "variant", variants };
}

/** Takes null out of a schema that allows it beside others. */
function withoutNull(
  schema: JsonMembers,
  root: JsonMembers,
): { readonly schema: JsonMembers; readonly isNullable: boolean } {
  const { type, enum: values } = schema;
  if (isList(type) && type.includes("null") && type.length > 1) {
    const others = type.filter((one) => one !== "null");
    const rest = others.length === 1 ? (others[0] ?? null) : others;
    return { schema: { ...schema, type: rest }, isNullable: true };
  }
  if (isList(values) && values.includes(null) && values.length > 1) {
    return { schema, isNullable: true };
  }
  const key = schema["anyOf"] === undefined ? "oneOf" : "anyOf";
  const variants = schema[key];
  if (!isList(variants)) return { schema, isNullable: false };
  const others = variants.filter((variant) => flatten(variant, root)?.["type"] !== "null");
  const isNullable = others.length < variants.length;
  const [only] = others;
  if (others.length !== 1 || only === undefined) {
    return { schema: { ...schema, [key]: others }, isNullable };
  }
  const { [key]: _variants, ...rest } = schema;
  const merged = { ...flatten(only, root), ...rest };
  const inner = withoutNull(merged, root);
  return { schema: inner.schema, isNullable: isNullable || inner.isNullable };
}

function commonOf(schema: JsonMembers): AnyField {
  return {
    title: textIn(schema, "title"),
    description: textIn(schema, "description"),
    initial: schema["default"],
    isNullable: false,
  };
}

function variantLabel(schema: JsonMembers | undefined, index: number): string {
  const type = schema && textIn(schema, "type");
  return (schema && textIn(schema, "title")) ?? type ?? `variant ${index + 1}`;
}

function labelOf(value: JsonValue): string {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}

function textIn(schema: JsonMembers, name: string): string | null {
  const value = schema[name];
  return typeof value === "string" ? value : null;
}

function numberIn(schema: JsonMembers, name: string): number | null {
  const value = schema[name];
  return typeof value === "number" ? value : null;
}

/** Without members that are undefined, which JSON does not have. */
function plain(members: Readonly<Record<string, JsonValue | undefined>>): JsonMembers {
  const entries = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as JsonMembers;
}
