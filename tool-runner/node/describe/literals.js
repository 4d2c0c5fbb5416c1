/**
 * Values that stand in the source of a tool.
 */

/** @import { Node } from "./types.js" */

/**
 * The value of a literal, also of arrays and objects of them; undefined for anything else.
 *
 * @param {Node} node
 * @returns {unknown}
 */
export function literalOf(node) {
  switch (node.type) {
    case "StringLiteral":
    case "NumericLiteral":
    case "BooleanLiteral":
      return node.value;
    case "NullLiteral":
      return null;
    case "UnaryExpression": {
      const value = literalOf(node.argument);
      return node.operator === "-" && typeof value === "number" ? -value : undefined;
    }
    case "TemplateLiteral":
      return node.expressions.length === 0 ? node.quasis[0].value.cooked : undefined;
    case "ArrayExpression": {
      const values = node.elements.map(
        (/** @type {Node | null} */ each) => each && literalOf(each),
      );
      return values.includes(undefined) ? undefined : values;
    }
    case "ObjectExpression":
      return node.properties.length === 0 ? {} : undefined;
    default:
      return undefined;
  }
}
