/**
 * A worker's log for people: a line of JSON becomes a line of time, level, event and facts.
 */
import { JsonError, type JsonObject, isJsonObject, parseJson } from "../worker/support/json.ts";
import { type Screen, type Style, printable } from "./screen.ts";

/** Characters of one fact that are shown; a longer text is cut, anything else that long is left out. */
const maxFactCharacters = 100;
/** Characters of a line that is none of the log. */
const maxLineCharacters = 2_000;

/** Members of a log line that have a place of their own. */
const placed: ReadonlySet<string> = new Set(["time", "level", "msg", "err"]);

const styles: Readonly<Record<string, Style>> = {
  debug: "dim",
  info: "green",
  warn: "yellow",
  error: "red",
  fatal: "red",
};

/** Shows a line of the log; what is no log line, such as the last words of a crash, as it is. */
export function showLogLine(line: string, screen: Screen): void {
  const entry = readEntry(line);
  if (entry === undefined) {
    screen.line(printable(line.slice(0, maxLineCharacters)));
    return;
  }
  const { level, event, time, facts, problem } = entry;
  const words = [
    screen.paint("dim", time),
    screen.paint(styles[level] ?? "dim", level.padEnd(5)),
    printable(event),
    screen.paint("dim", printable(facts.join(" "))),
  ];
  screen.line(words.join(" ").trimEnd());
  if (problem !== undefined) screen.line(printable(problem).replaceAll(/^/gm, "    "));
}

interface Entry {
  readonly time: string;
  readonly level: string;
  readonly event: string;
  readonly facts: readonly string[];
  /** What went wrong; with the stack where a human has to look. */
  readonly problem: string | undefined;
}

function readEntry(line: string): Entry | undefined {
  const document = parse(line);
  if (document === undefined) return undefined;
  const { time, level, msg } = document;
  if (typeof time !== "string" || typeof level !== "string") return undefined;
  const facts = Object.entries(document).flatMap(([name, value]) => {
    const text = placed.has(name) ? undefined : factText(value);
    return text === undefined ? [] : [`${name}=${text}`];
  });
  return {
    time: new Date(time).toTimeString().slice(0, "hh:mm:ss".length),
    level,
    event: typeof msg === "string" ? msg : "",
    facts,
    problem: problemOf(document["err"], level === "error" || level === "fatal"),
  };
}

function parse(line: string): JsonObject | undefined {
  try {
    const document = parseJson(Buffer.from(line));
    return isJsonObject(document) ? document : undefined;
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

function factText(value: unknown): string | undefined {
  if (typeof value !== "string") {
    const text = JSON.stringify(value);
    return text.length > maxFactCharacters ? undefined : text;
  }
  const text = value.length > maxFactCharacters ? `${value.slice(0, maxFactCharacters)}…` : value;
  return /^[\w./:@%+-]+$/.test(text) ? text : JSON.stringify(text);
}

function problemOf(error: unknown, withStack: boolean): string | undefined {
  if (!isJsonObject(error)) return undefined;
  const text = withStack ? (error["stack"] ?? error["message"]) : error["message"];
  return typeof text === "string" ? text : undefined;
}
