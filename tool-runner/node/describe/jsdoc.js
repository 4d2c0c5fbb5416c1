/**
 * JSDoc comments: the first paragraph, and the tags that tell of types and parameters.
 */

/**
 * One tag, such as `@param {string} [args.unit="celsius"] - text`.
 *
 * @typedef {object} Tag
 * @property {string} name such as `param`
 * @property {string} type what stands in braces, without the `=` of what may be left out, or ""
 * @property {string} target what the tag is about
 * @property {string} text
 */

/** @typedef {{ description: string | undefined, tags: readonly Tag[] }} Doc */

/** @type {Doc} */
const nothing = { description: undefined, tags: [] };

/** A comment, as the parser has it. @typedef {{ type: string, value: string }} Comment */

/**
 * The last JSDoc comment before a node.
 *
 * @param {readonly Comment[] | null | undefined} comments
 * @returns {Doc}
 */
export function docOf(comments) {
  const last = comments?.findLast(isDoc);
  return last === undefined ? nothing : parseDoc(last);
}

/** @param {Comment} comment */
export function isDoc({ type, value }) {
  return type === "CommentBlock" && value.startsWith("*");
}

/**
 * @param {Comment} comment
 * @returns {Doc}
 */
export function parseDoc({ value }) {
  const lines = value
    .slice(1)
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd());
  const text = lines.join("\n").replace(/\{@\w+\s+([^}|]*)(?:\|[^}]*)?\}/g, "$1");
  const [intro = "", ...blocks] = text.split(/^\s*@(?=\w)/m);
  const [paragraph = ""] = intro.trim().split(/\n\s*\n/);
  return { description: oneLine(paragraph), tags: blocks.map(parseTag) };
}

/**
 * @param {string} block
 * @returns {Tag}
 */
function parseTag(block) {
  const name = /^\w+/.exec(block)?.[0] ?? "";
  let rest = block.slice(name.length).trim();
  let type = "";
  if (rest.startsWith("{")) {
    const end = endOfBraces(rest);
    type = rest.slice(1, end).replace(/=\s*$/, "").trim();
    rest = rest.slice(end + 1).trim();
  }
  const [whole = "", bracket, plain] = /^(?:\[\s*([\w.$]+)[^\]]*\]|([\w.$]+))/.exec(rest) ?? [];
  const text = oneLine(rest.slice(whole.length).replace(/^\s*-\s+/, "")) ?? "";
  return { name, type, target: bracket ?? plain ?? "", text };
}

/**
 * Index of the brace that closes the first one; the end where none does.
 *
 * @param {string} text
 */
function endOfBraces(text) {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}") depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
}

/** @param {string} text */
function oneLine(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line === "" ? undefined : line;
}
