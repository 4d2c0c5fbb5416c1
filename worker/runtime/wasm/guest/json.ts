/**
 * Values and errors of programs as JSON. These functions' text runs inside, as that of globals.ts.
 */
import type { Guest } from "./contract.ts";

type Encode = Guest["encode"];

/** A value as JSON text, as tools' results are encoded: tool-runner/node/json.js. */
export function makeEncode(): Encode {
  const { stringify } = JSON;
  const { keys } = Object;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { isFinite } = Number;

  const primitive = (value: unknown): string | undefined => {
    if (typeof value === "bigint") return `"${value}"`;
    if (typeof value === "number") return isFinite(value) ? `${value}` : "null";
    if (typeof value === "string") return stringify(value);
    return typeof value === "boolean" || value === null ? `${String(value)}` : undefined;
  };
  const has = (value: object, name: string | symbol): boolean =>
    typeof (value as Record<string | symbol, unknown>)[name] === "function";
  const nameOf = ({ constructor }: object): string => constructor?.name || "Object";

  const textOf = (value: unknown, path: string, depth: number, around: readonly object[]) => {
    if (typeof value !== "object" || value === null) return primitive(value);
    const refused = (why: string) => new TypeError(`${path === "" ? "it" : path} ${why}`);
    if (isView(value) || value instanceof ArrayBuffer) throw refused("is bytes");
    const said: unknown = has(value, "toJSON") ? (value as Date).toJSON(path) : value;
    if (typeof said !== "object" || said === null) return primitive(said);
    if (said instanceof String || said instanceof Number || said instanceof Boolean)
      return primitive(said.valueOf());
    if (said instanceof Error && said === value) return stringify(`${said}`);
    for (const each of around) if (each === said) throw refused("is circular");
    if (depth === 0) throw refused("is nested too deeply");
    const inner = (member: unknown, key: string): string | undefined =>
      textOf(member, path === "" ? key : `${path}.${key}`, depth - 1, [said, ...around]);
    let text = "";
    if (isArray(said) || said instanceof Set) {
      let index = 0;
      for (const each of said)
        text += `${index === 0 ? "" : ","}${inner(each, `${index++}`) ?? "null"}`;
      return `[${text}]`;
    }
    const add = (key: string, member: unknown): void => {
      const content = inner(member, key);
      if (content !== undefined) text += `${text === "" ? "" : ","}${stringify(key)}:${content}`;
    };
    if (said instanceof Map) {
      for (const [key, member] of said) {
        if (typeof key === "symbol" || (typeof key === "object" && key !== null))
          throw refused("is a Map with a key that is no text");
        add(`${key}`, member);
      }
      return `{${text}}`;
    }
    if (has(said, "then")) throw refused("is a promise; await it");
    if (has(said, Symbol.iterator) || has(said, Symbol.asyncIterator))
      throw refused(`is an iterator (${nameOf(said)}); read it into an array`);
    for (const key of keys(said)) add(key, (said as Record<string, unknown>)[key]);
    return `{${text}}`;
  };
  return (value, maxDepth) => {
    const text = textOf(value, "", maxDepth, []);
    if (text === undefined) throw new TypeError(`it is a ${typeof value}`);
    return text;
  };
}

/** Class and text of what was thrown, with its causes: tool-runner/node/errors.js. */
export function makeDescribe(
  encode: Encode,
  isOutOfMemory: (thrown: unknown) => boolean,
): Guest["describe"] {
  const maxCauses = 5;
  const maxCharacters = 4_000;
  const { stringify } = JSON;
  const attempt = <Result, Otherwise>(action: () => Result, otherwise: Otherwise) => {
    try {
      return action();
    } catch {
      return otherwise;
    }
  };
  const cut = (text: string) =>
    text.length > maxCharacters ? `${text.slice(0, maxCharacters - 1)}…` : text;
  const isError = (value: unknown): value is Error =>
    attempt(() => value instanceof Error || "stack" in (value as object), false);

  const textOf = (thrown: unknown, causes: number): string => {
    if (!isError(thrown)) {
      if (thrown === null || thrown === undefined) return String(thrown);
      const kind = typeof thrown;
      if (kind === "function" || kind === "symbol") return `a ${kind}`;
      const text = attempt(
        () => (kind === "object" ? encode(thrown, 10) : `${thrown as string}`),
        "(its text cannot be had)",
      );
      return `${kind === "object" ? "an" : "a"} ${kind}: ${cut(text)}`;
    }
    const name = attempt(() => {
      const own = `${thrown.name}`;
      return own === "" || own === "Error" ? thrown.constructor.name || "Error" : own;
    }, "Error");
    const message = attempt(() => `${thrown.message}`, "(its text cannot be had)");
    const named = cut(message === "" ? name : `${name}: ${message}`);
    const cause = causes > 0 ? attempt(() => thrown.cause, undefined) : undefined;
    return cause === undefined ? named : `${named} (cause: ${textOf(cause, causes - 1)})`;
  };
  return (thrown) => {
    const stack = isError(thrown) ? attempt(() => `${thrown.stack}`, "") : "";
    return stringify({
      ...{ text: textOf(thrown, maxCauses), stack: stack.slice(0, 100_000) },
      isOutOfMemory: isOutOfMemory(thrown),
    });
  };
}
