/**
 * A tool's function in the text of its module: its first parameter and its result, by the types of
 * TypeScript or of JSDoc that stand in the same file.
 */
import { readFile, stat } from "node:fs/promises";
import { parse, parseExpression } from "@babel/parser";
import { docOf, isDoc, parseDoc } from "./jsdoc.js";
import { literalOf } from "./literals.js";
import { Types } from "./types.js";

/** @import { Comment, Doc } from "./jsdoc.js" */
/** @import { Declarations, Node } from "./types.js" */
/** @import { Description, Schema } from "./tool.js" */

/** Bytes of a module that is read for a description. */
const maxSourceBytes = 1024 * 1024;

/** The tool's function, the comment on it, and the type of the constant that it is assigned to. */
/** @typedef {{ node: Node, doc: Doc, type: Node | undefined }} Found */

/**
 * @param {string} file
 * @param {string} name of the export
 * @returns {Promise<Description>}
 * @throws {SyntaxError} for a source that the parser does not know
 */
export async function descriptionInSource(file, name) {
  if ((await stat(file)).size > maxSourceBytes) return {};
  const isTyped = /\.[cm]?ts$/.test(file);
  const { program, comments } = parse(await readFile(file, "utf8"), {
    sourceType: "unambiguous",
    plugins: isTyped ? ["typescript"] : [],
    allowReturnOutsideFunction: true,
  });
  const found = findExport(program, name);
  if (found === undefined) return {};
  const declared = declarationsIn(program, comments ?? []);
  return {
    ...(found.doc.description !== undefined && { description: found.doc.description }),
    ...parametersOf(found, declared),
    ...resultOf(found, declared),
  };
}

/**
 * @param {Node} program
 * @param {string} name
 * @returns {Found | undefined}
 */
function findExport(program, name) {
  let local;
  for (const statement of program.body) {
    const { type, declaration } = statement;
    if (type === "ExportDefaultDeclaration" && name === "default") {
      return functionIn(declaration, statement.leadingComments);
    }
    if (type !== "ExportNamedDeclaration" || statement.source) continue;
    const found = declaration && declared(declaration, name, statement.leadingComments);
    if (found) return found;
    const specifier = statement.specifiers.find((/** @type {Node} */ each) => {
      return (each.exported.name ?? each.exported.value) === name;
    });
    local ??= specifier?.local.name;
  }
  if (local === undefined) return undefined;
  for (const statement of program.body) {
    const found = declared(statement.declaration ?? statement, local, statement.leadingComments);
    if (found) return found;
  }
  return undefined;
}

/**
 * @param {Node} declaration
 * @param {string} name
 * @param {readonly Comment[] | undefined} comments
 * @returns {Found | undefined}
 */
function declared(declaration, name, comments) {
  if (declaration.type === "FunctionDeclaration" && declaration.id?.name === name) {
    return functionIn(declaration, comments);
  }
  if (declaration.type !== "VariableDeclaration" || declaration.kind !== "const") return undefined;
  const one = declaration.declarations.find((/** @type {Node} */ each) => each.id.name === name);
  if (!one?.init) return undefined;
  const found = functionIn(one.init, comments);
  return found && { ...found, type: one.id.typeAnnotation?.typeAnnotation };
}

/**
 * @param {Node} node
 * @param {readonly Comment[] | undefined} comments
 * @returns {Found | undefined} undefined for what is no function here, such as the result of a call
 */
function functionIn(node, comments) {
  const wrappers = ["TSSatisfiesExpression", "TSAsExpression", "ParenthesizedExpression"];
  if (wrappers.includes(node.type)) return functionIn(node.expression, comments);
  if (!/^(?:Function|ArrowFunction)/.test(node.type)) return undefined;
  return { node, doc: docOf(comments ?? node.leadingComments), type: undefined };
}

/**
 * Interfaces, type aliases and `@typedef`s by name.
 *
 * @param {Node} program
 * @param {readonly Comment[]} comments
 * @returns {Declarations}
 */
function declarationsIn(program, comments) {
  /** @type {Map<string, Node>} */
  const found = new Map();
  for (const { tags } of comments.filter(isDoc).map(parseDoc)) {
    for (const { name, type, target } of tags) {
      const node = name === "typedef" ? parseType(type) : undefined;
      if (node !== undefined) found.set(target, node);
    }
  }
  for (const statement of program.body) {
    const declaration = statement.declaration ?? statement;
    const isType = ["TSInterfaceDeclaration", "TSTypeAliasDeclaration"].includes(declaration.type);
    if (!isType || declaration.typeParameters) continue;
    // Two interfaces of one name are one type, which is left open.
    found.set(declaration.id.name, found.has(declaration.id.name) ? unknownType : declaration);
  }
  return found;
}

/** @type {Node} */
const unknownType = { type: "TSUnknownKeyword" };

/**
 * A type of JSDoc; undefined for what TypeScript does not read.
 *
 * @param {string} text
 * @returns {Node | undefined}
 */
function parseType(text) {
  if (text === "" || text === "object") return undefined;
  try {
    /** @type {Node} */
    const expression = parseExpression(`x as (${text})`, { plugins: ["typescript"] });
    return expression.typeAnnotation;
  } catch {
    return undefined;
  }
}

/**
 * @param {Found} found
 * @param {Declarations} declarations
 * @returns {{ parameters?: Schema }}
 */
function parametersOf({ node, doc, type }, declarations) {
  const [first] = node.params;
  if (first === undefined) return { parameters: { type: "object", properties: {} } };
  const pattern = first.type === "AssignmentPattern" ? first.left : first;
  const params = doc.tags.filter(({ name }) => name === "param");
  const [about] = params.filter(({ target }) => !target.includes("."));
  const isTool = type?.type === "TSTypeReference" && /Tool$/.test(type.typeName.name ?? "");
  const given =
    pattern.typeAnnotation?.typeAnnotation ??
    (isTool ? type.typeArguments?.params[0] : undefined) ??
    parseType(about?.type ?? "");
  const types = new Types(declarations, { isResult: false });
  const members = params.filter(({ target }) => target.startsWith(`${about?.target ?? "args"}.`));
  const schema = given === undefined ? {} : types.objectOf(given);
  if (schema === undefined) return {};
  /** @type {Record<string, Schema>} */
  const properties = { ...schema.properties };
  // Types say what is required. A tag without brackets does not: the body may have a default.
  const required = new Set(schema.required);
  for (const { type: text, target, text: description } of members) {
    const name = target.slice(target.indexOf(".") + 1);
    if (name.includes(".")) continue;
    const member = parseType(text);
    const known = properties[name] ?? (member === undefined ? {} : types.of(member));
    properties[name] = {
      ...known,
      ...(description !== "" && !known["description"] && { description }),
    };
  }
  for (const [name, value] of membersOf(pattern)) {
    const known = properties[name] ?? {};
    properties[name] = value === undefined ? known : { ...known, default: value };
    if (value !== undefined) required.delete(name);
  }
  if (given === undefined && Object.keys(properties).length === 0) return {};
  return {
    parameters: types.rooted({
      type: "object",
      properties,
      ...(required.size > 0 && { required: [...required] }),
      ...(schema.additionalProperties && { additionalProperties: schema.additionalProperties }),
    }),
  };
}

/**
 * The members that a pattern takes from the arguments, with their defaults; undefined for a member
 * without one, or one that only code knows.
 *
 * @param {Node} pattern
 * @returns {readonly (readonly [string, unknown])[]}
 */
function membersOf(pattern) {
  if (pattern.type !== "ObjectPattern") return [];
  return pattern.properties.flatMap((/** @type {Node} */ { type, computed, key, value }) => {
    if (type !== "ObjectProperty" || computed) return [];
    const name = key.name ?? key.value;
    if (value.type !== "AssignmentPattern") return [[name, undefined]];
    return [[name, literalOf(value.right)]];
  });
}

/**
 * @param {Found} found
 * @param {Declarations} declarations
 * @returns {{ result?: Schema }}
 */
function resultOf({ node, doc }, declarations) {
  const tag = doc.tags.find(({ name }) => name === "returns" || name === "return");
  const given = node.returnType?.typeAnnotation ?? parseType(tag?.type ?? "");
  if (given === undefined) return {};
  const types = new Types(declarations, { isResult: true });
  const isPromise = given.type === "TSTypeReference" && given.typeName.name === "Promise";
  const result = types.outcomeOf(isPromise ? given.typeArguments?.params[0] : given);
  return result === undefined ? {} : { result: types.rooted(result) };
}
