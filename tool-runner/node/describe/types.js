/**
 * Types of TypeScript as JSON Schemas (2020-12). What is not known is left open: `{}` accepts
 * anything.
 */
import { docOf } from "./jsdoc.js";
import { literalOf } from "./literals.js";
import { arrayOf, mayBeUndefined, merged, reference, textResult } from "./parts.js";

/** @import { ObjectSchema } from "./parts.js" */
/** @import { Schema } from "./tool.js" */

/**
 * A node of the parser's tree, whose types would be a package of their own.
 *
 * @typedef {any} Node
 */

/** @typedef {ReadonlyMap<string, Node>} Declarations */

/** Levels of a type that are read. */
const maxDepth = 20;

const text = { type: "string" };
const nothing = { type: "null" };
const keywords = new Map(
  Object.entries({
    TSStringKeyword: text,
    TSTemplateLiteralType: text,
    TSBooleanKeyword: { type: "boolean" },
    TSNullKeyword: nothing,
    TSObjectKeyword: { type: "object" },
  }),
);
/** Types of arrays, by name. */
const arrays = new Set(["Array", "ReadonlyArray"]);

export class Types {
  #declarations;
  #isResult;
  #depth = 0;
  /** @type {Map<string, Schema>} */
  #definitions = new Map();

  /**
   * @param {Declarations} declarations
   * @param {{ isResult: boolean }} options of a result it is said what JSON makes of values: NaN is
   *   null, a Date is text
   */
  constructor(declarations, { isResult }) {
    this.#declarations = declarations;
    this.#isResult = isResult;
  }

  /**
   * @param {Node} node
   * @returns {Schema}
   */
  of(node) {
    if (this.#depth >= maxDepth) return {};
    this.#depth += 1;
    try {
      return this.#of(node);
    } finally {
      this.#depth -= 1;
    }
  }

  /**
   * The members of an object's type; undefined for a type that is none, or not known here.
   *
   * @param {Node} node
   * @returns {ObjectSchema | undefined}
   */
  objectOf(node) {
    const schema = this.of(node);
    const name = String(schema["$ref"] ?? "").slice("#/$defs/".length);
    const meant = this.#definitions.get(name) ?? schema;
    if (name !== "" && !this.#isNeeded(name)) this.#definitions.delete(name);
    return meant["type"] === "object" ? meant : undefined;
  }

  /**
   * The schema of a call's result: an object is one, of anything else its text is. Undefined where
   * the type does not say it.
   *
   * @param {Node | undefined} node
   * @returns {Schema | undefined}
   */
  outcomeOf(node) {
    const { type, anyOf, ...schema } = node === undefined ? {} : this.of(node);
    if (node?.type === "TSVoidKeyword" || type === "null") return textResult(nothing);
    if (node !== undefined && (type === "object" || schema["$ref"])) return this.objectOf(node);
    return typeof type === "string" && anyOf === undefined ? textResult(text) : undefined;
  }

  /**
   * A schema with the definitions that it refers to.
   *
   * @param {Schema} schema
   * @returns {Schema}
   */
  rooted(schema) {
    if (this.#definitions.size === 0) return schema;
    return { ...schema, $defs: Object.fromEntries(this.#definitions) };
  }

  /** @param {string} name of a definition that another one or itself may refer to */
  #isNeeded(name) {
    return JSON.stringify([...this.#definitions.values()]).includes(`"#/$defs/${name}"`);
  }

  /**
   * @param {Node} node
   * @returns {Schema}
   */
  #of(node) {
    const known = keywords.get(node.type);
    if (known !== undefined) return { ...known };
    switch (node.type) {
      case "TSNumberKeyword":
        return this.#isResult ? { anyOf: [{ type: "number" }, nothing] } : { type: "number" };
      case "TSLiteralType": {
        const value = literalOf(node.literal);
        return value === undefined ? {} : { type: typeof value, enum: [value] };
      }
      case "TSUnionType":
        return this.#union(node.types);
      case "TSIntersectionType":
        return this.#intersection(node.types);
      case "TSArrayType":
        return arrayOf(this.of(node.elementType));
      case "TSTupleType":
        return this.#tuple(node.elementTypes);
      case "TSTypeOperator":
        return node.operator === "readonly" ? this.of(node.typeAnnotation) : {};
      case "TSParenthesizedType":
        return this.of(node.typeAnnotation);
      case "TSTypeLiteral":
        return this.#members(node.members);
      case "TSTypeReference":
        return this.#named(node.typeName.name ?? "", node.typeArguments?.params ?? []);
      default:
        return {};
    }
  }

  /**
   * @param {string} name
   * @param {readonly Node[]} typeArguments
   * @returns {Schema}
   */
  #named(name, [first, second]) {
    const declaration = this.#declarations.get(name);
    if (declaration !== undefined) return this.#definition(name, declaration);
    if (arrays.has(name)) return arrayOf(first === undefined ? {} : this.of(first));
    if (name === "Record") {
      const values = second === undefined ? {} : this.of(second);
      const isOpen = Object.keys(values).length === 0;
      return { type: "object", ...(!isOpen && { additionalProperties: values }) };
    }
    if (name === "Date" && this.#isResult) return text;
    if (first === undefined) return {};
    if (name === "Readonly") return this.of(first);
    if (name !== "Partial") return {};
    const { required: _none, ...partial } = this.objectOf(first) ?? {};
    return partial;
  }

  /**
   * @param {string} name
   * @param {Node} declaration
   * @returns {Schema}
   */
  #definition(name, declaration) {
    if (!this.#definitions.has(name)) {
      this.#definitions.set(name, {});
      // Definitions are not nested, wherever they are first referred to.
      const depth = this.#depth;
      this.#depth = 0;
      const schema = this.#declared(declaration);
      this.#depth = depth;
      const { description } = docOf(declaration.leadingComments);
      this.#definitions.set(name, { ...schema, ...(description && { description }) });
    }
    return { $ref: `#/$defs/${name}` };
  }

  /**
   * @param {Node} declaration
   * @returns {Schema}
   */
  #declared(declaration) {
    if (declaration.type === "TSTypeAliasDeclaration") return this.of(declaration.typeAnnotation);
    if (declaration.type !== "TSInterfaceDeclaration") return this.of(declaration);
    const { body, extends: bases } = declaration;
    const own = this.#members(body.body);
    // Members of a base that is not known here are left open.
    const inherited = (bases ?? []).map((/** @type {Node} */ base) => {
      const name = base.expression?.name ?? "";
      return base.typeArguments ? undefined : this.objectOf(reference(name));
    });
    return merged([...inherited, own].filter((each) => each !== undefined));
  }

  /**
   * @param {readonly Node[]} members
   * @returns {ObjectSchema}
   */
  #members(members) {
    /** @type {Record<string, Schema>} */
    const properties = {};
    /** @type {string[]} */
    const required = [];
    /** @type {Schema | undefined} */
    let others;
    for (const member of members) {
      const type = member.typeAnnotation?.typeAnnotation;
      if (member.type === "TSIndexSignature" && type) others = this.of(type);
      if (member.type !== "TSPropertySignature" || member.computed) continue;
      const name = String(member.key.name ?? member.key.value);
      const { description } = docOf(member.leadingComments);
      const schema = type ? this.of(type) : {};
      properties[name] = description === undefined ? schema : { ...schema, description };
      const mayMiss = member.optional || (type && mayBeUndefined(type, this.#declarations));
      if (!mayMiss) required.push(name);
    }
    return {
      type: "object",
      properties,
      ...(required.length > 0 && { required }),
      ...(others && Object.keys(others).length > 0 && { additionalProperties: others }),
    };
  }

  /**
   * @param {readonly Node[]} types
   * @returns {Schema}
   */
  #union(types) {
    const all = types
      .filter(({ type }) => type !== "TSUndefinedKeyword")
      .map((type) => this.of(type));
    const enums = all.filter((schema) => schema["enum"] !== undefined);
    const values = enums.flatMap((schema) => /** @type {unknown[]} */ (schema["enum"]));
    const kinds = new Set(enums.map(({ type }) => type));
    const choices = [
      ...(enums.length > 0
        ? [{ ...(kinds.size === 1 && { type: enums[0]?.["type"] }), enum: values }]
        : []),
      ...all.filter((schema) => schema["enum"] === undefined),
    ];
    if (choices.length === 0 || choices.some((each) => Object.keys(each).length === 0)) return {};
    const flat = choices.flatMap((each) => /** @type {Schema[]} */ (each["anyOf"] ?? [each]));
    const unique = [...new Map(flat.map((each) => [JSON.stringify(each), each])).values()];
    return unique.length === 1 ? { ...unique[0] } : { anyOf: unique };
  }

  /**
   * @param {readonly Node[]} types
   * @returns {Schema}
   */
  #intersection(types) {
    const objects = types.map((type) => this.objectOf(type)).filter((each) => each !== undefined);
    return objects.length === 0 ? {} : merged(objects);
  }

  /**
   * @param {readonly Node[]} elements
   * @returns {Schema}
   */
  #tuple(elements) {
    if (elements.some(({ type }) => type === "TSRestType")) return { type: "array" };
    const items = elements.map((element) => {
      return this.of(element.elementType ?? element.typeAnnotation ?? element);
    });
    const required = elements.filter(
      ({ type, optional }) => type !== "TSOptionalType" && !optional,
    );
    const prefix = items.length > 0 && { prefixItems: items };
    return { type: "array", ...prefix, minItems: required.length, maxItems: items.length };
  }
}
