/**
 * Accepts most values on this thread: docs/adr/0053-what-surely-fits-takes-no-thread.md.
 */
import { listOf, mapOf, typeList } from "../../protocol/discovery/expand-schema.ts";
import { resolveRef } from "../../protocol/discovery/schema-problems.ts";
import { type Json, type JsonObject, isJsonObject } from "../../support/json/json.ts";
import { coerceKeyword, fits } from "./coerce.ts";

/** Schemas, names, enumerated values and characters that are looked at, at most. */
export const maxLooks = 10_000;
/** Levels of schemas that are followed, at most. */
const maxDepth = 100;

/** Keywords that every value keeps. `properties` is looked at with `additionalProperties`. */
const notes: ReadonlySet<string> = new Set([
  ...["title", "description", "default", "examples", "format", "$comment", "$schema"],
  ...["readOnly", "writeOnly", "deprecated", "$defs", "definitions", coerceKeyword],
]);

/**
 * Whether a value matches a schema that the worker accepts, and `coerce` leaves it as it is. False
 * says nothing. Takes less than a millisecond, whatever the schema.
 */
export function surelyFits(value: Json, schema: JsonObject): boolean {
  return new Look(schema).isFit(value, schema);
}

class Look {
  readonly #root: JsonObject;
  readonly #targets = new Map<Json, Json | undefined>();
  #left = maxLooks;
  #depth = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  isFit(value: Json, schema: Json | undefined): boolean {
    if (schema === true) return this.#has(1);
    if (!isJsonObject(schema) || !this.#has(1) || this.#depth >= maxDepth) return false;
    // JSON has no such numbers, and validators differ on them.
    if (typeof value === "number" && !Number.isFinite(value)) return false;
    this.#depth++;
    const isFit = Object.entries(schema).every(([keyword, bound]) =>
      this.#keeps(value, keyword, bound, schema),
    );
    this.#depth--;
    return isFit;
  }

  /** Of a keyword that is not here nothing is certain. */
  #keeps(value: Json, keyword: string, bound: Json, schema: JsonObject): boolean {
    switch (keyword) {
      case "type":
        return fits(value, typeList(bound));
      case "enum":
        return this.#has(listOf(bound).length) && listOf(bound).some((it) => isSame(value, it));
      case "const":
        return isSame(value, bound);
      case "minimum":
        return typeof value !== "number" || value >= Number(bound);
      case "maximum":
        return typeof value !== "number" || value <= Number(bound);
      case "exclusiveMinimum":
        return typeof value !== "number" || value > Number(bound);
      case "exclusiveMaximum":
        return typeof value !== "number" || value < Number(bound);
      case "minLength":
        return typeof value !== "string" || this.#lengthOf(value) >= Number(bound);
      case "maxLength":
        return (
          typeof value !== "string" ||
          value.length <= Number(bound) ||
          this.#lengthOf(value) <= Number(bound)
        );
      case "minItems":
        return !Array.isArray(value) || value.length >= Number(bound);
      case "maxItems":
        return !Array.isArray(value) || value.length <= Number(bound);
      case "items":
        return listOf(value).every((item) => this.isFit(item, bound));
      case "required":
        return !isJsonObject(value) || this.#hasAll(value, listOf(bound));
      case "properties":
        return this.#membersFit(value, (name) => ownMember(mapOf(bound), name));
      case "additionalProperties": {
        const named = mapOf(schema["properties"]);
        return this.#membersFit(value, (name) => (Object.hasOwn(named, name) ? undefined : bound));
      }
      case "allOf":
        return listOf(bound).every((each) => this.isFit(value, each));
      case "anyOf":
        return this.isFit(value, this.#choicesFor(value, bound)[0]);
      case "oneOf": {
        const [only, ...others] = this.#choicesFor(value, bound);
        return others.length === 0 && listOf(bound).every(isTyped) && this.isFit(value, only);
      }
      case "$ref":
        return this.isFit(value, this.#targetOf(bound));
      default:
        return notes.has(keyword);
    }
  }

  #membersFit(value: Json, schemaOf: (name: string) => Json | undefined): boolean {
    const members = mapOf(value);
    // Not their list, which may be long.
    for (const name in members) {
      // Validators differ on this one.
      if (!this.#has(1) || !Object.hasOwn(members, name) || name === "__proto__") return false;
      const schema = schemaOf(name);
      if (schema !== undefined && !this.isFit(members[name] ?? null, schema)) return false;
    }
    return true;
  }

  /** Looked for once: names may be long. */
  #targetOf(ref: Json): Json | undefined {
    if (!this.#targets.has(ref)) {
      if (typeof ref !== "string" || !this.#has(ref.length)) return undefined;
      this.#targets.set(ref, resolveRef(this.#root, ref));
    }
    return this.#targets.get(ref);
  }

  #hasAll(value: JsonObject, names: readonly Json[]): boolean {
    return (
      this.#has(names.length) &&
      names.every((name) => typeof name === "string" && Object.hasOwn(value, name))
    );
  }

  /** The alternatives whose type the value has: `coerce` takes the first of them. */
  #choicesFor(value: Json, choices: Json): readonly Json[] {
    const all = listOf(choices);
    return this.#has(all.length) ? all.filter((choice) => fits(value, typesOf(choice))) : [];
  }

  /** In characters; NaN, which no bound admits, for a text that is too long to be counted. */
  #lengthOf(text: string): number {
    return this.#has(text.length) ? [...text].length : Number.NaN;
  }

  /** Counts what is looked at; false at the end of it. */
  #has(count: number): boolean {
    this.#left -= count;
    return this.#left >= 0;
  }
}

function typesOf(schema: Json): readonly Json[] {
  return typeList(mapOf(schema)["type"]);
}

function isTyped(schema: Json): boolean {
  return typesOf(schema).length > 0;
}

/** Only of what has no parts. */
function isSame(value: Json, other: Json): boolean {
  return value === other && (typeof value !== "object" || value === null);
}

function ownMember(map: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(map, name) ? map[name] : undefined;
}
