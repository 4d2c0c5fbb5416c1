/**
 * Parts of schemas, and of the parser's tree.
 */

/** @import { Schema } from "./tool.js" */

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
