/**
 * Ids of tools, and the patterns that allow them.
 */
import { withoutDeceptive } from "../../support/text/deceptive.ts";

/** Characters of a namespace or a name. */
export const maxIdPartLength = 128;

const part = `[A-Za-z0-9_.-]{1,${maxIdPartLength}}`;
const idPattern = new RegExp(`^(?:(?<namespace>${part}):)?(?<name>${part})$`);
const wholeNamespace = new RegExp(`^(?<namespace>${part}):\\*$`);

/** The parts of an id. */
export interface ToolId {
  /** Empty without one. */
  readonly namespace: string;
  readonly name: string;
}

/** The parts of `namespace:name` or `name`; undefined for any other text. */
export function parseToolId(id: string): ToolId | undefined {
  const groups = idPattern.exec(id)?.groups;
  if (groups?.["name"] === undefined) return undefined;
  return { namespace: groups["namespace"] ?? "", name: groups["name"] };
}

/** Whether a text is an id, `namespace:*`, or `*`, which allows every tool. */
export function isToolPattern(text: string): boolean {
  return text === "*" || wholeNamespace.test(text) || idPattern.test(text);
}

/** The tools that a list of patterns allows. */
export class ToolScope {
  readonly #hasAll: boolean;
  readonly #ids: ReadonlySet<string>;
  readonly #namespaces: ReadonlySet<string>;

  /** Throws TypeError for a text that is no pattern. */
  constructor(patterns: readonly string[]) {
    const wrong = patterns.find((pattern) => !isToolPattern(pattern));
    if (wrong !== undefined) throw new TypeError(`${JSON.stringify(wrong)} is no pattern of tools`);
    this.#hasAll = patterns.includes("*");
    this.#ids = new Set(patterns);
    this.#namespaces = new Set(
      patterns.flatMap((pattern) => wholeNamespace.exec(pattern)?.groups?.["namespace"] ?? []),
    );
  }

  allows(id: string): boolean {
    const parts = parseToolId(id);
    if (parts === undefined) return false;
    return this.#hasAll || this.#ids.has(id) || this.#namespaces.has(parts.namespace);
  }
}

/** A text in place of an id, as errors and records show it. */
export function shownId(id: string): string {
  const shown = withoutDeceptive(id.slice(0, 2 * maxIdPartLength + 1).toWellFormed());
  return parseToolId(shown) === undefined ? JSON.stringify(shown) : shown;
}
