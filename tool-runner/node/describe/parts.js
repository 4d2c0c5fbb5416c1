/**
 * Parts of schemas, and of the parser's tree.
 */

/** @import { Schema } from "./tool.js" */
/** @import { Declarations, Node } from "./types.js" */

/**
 * @typedef {object} ObjectSchema
 * @property {"object"} [type]
 * @property {Record<string, Schema>} [properties]
 * @property {string[]} [required]
 * @property {Schema} [additionalProperties]
 */

/** @param {string} name */
export function reference(name) {
  return { type: "TSTypeReference", typeName: { type: "Identifier", name } };
}

/** @param {Schema} items */
export function arrayOf(items) {
  return { type: "array", ...(Object.keys(items).length > 0 && { items }) };
}

/**
 * @param {readonly ObjectSchema[]} objects of which later ones win
 * @returns {ObjectSchema}
 */
export function merged(objects) {
  const required = [...new Set(objects.flatMap((each) => each.required ?? []))];
  const properties = Object.assign({}, ...objects.map((each) => each.properties ?? {}));
  return { type: "object", properties, ...(required.length > 0 && { required }) };
}

/** @param {Schema} said */
export function textResult(said) {
  return {
    type: "object",
    properties: { text: said, data_objects: { type: "array" } },
    required: ["text", "data_objects"],
  };
}

/**
 * Whether a type has `undefined` among its choices, also by the name of an alias.
 *
 * @param {Node | undefined} node
 * @param {Declarations} declarations
 * @param {Set<Node>} [seen] as aliases may go round in circles
 * @returns {boolean}
 */
export function mayBeUndefined(node, declarations, seen = new Set()) {
  if (node === undefined || seen.has(node)) return false;
  seen.add(node);
  const has = (/** @type {Node | undefined} */ each) => mayBeUndefined(each, declarations, seen);
  switch (node.type) {
    case "TSUndefinedKeyword":
      return true;
    case "TSUnionType":
      return node.types.some(has);
    case "TSParenthesizedType":
    case "TSTypeAliasDeclaration":
      return has(node.typeAnnotation);
    case "TSTypeReference":
      return has(declarations.get(node.typeName.name));
    default:
      return false;
  }
}
