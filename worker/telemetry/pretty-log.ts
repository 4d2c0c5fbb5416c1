/**
 * The log for people: a line of JSON becomes a line of time, level, message and facts. Long texts
 * stand below it, and so does everything long that belongs to a warning.
 */
import type { Writable } from "node:stream";
import { styleText } from "node:util";
import type { DestinationStream } from "pino";
import { JsonError, type JsonObject, isJsonObject, parseJson } from "../support/json/json.ts";
import { printable } from "../support/text/printable.ts";

/** Styles by name, as `util.styleText` knows them. */
export type Style = Parameters<typeof styleText>[0];

/** Where people read. */
export interface Screen {
  line(text: string): void;
  /** The text in a style, or as it is where no styles are shown. */
  paint(style: Style, text: string): string;
}

/** Characters of a fact that stands in the line; a longer one stands below it. */
const maxInlineCharacters = 100;
/** Characters of one fact, or of a line that is none of the log. */
const maxShownCharacters = 10_000;
/** Digits of a hash or an id that is longer: so many tell two of them apart. */
const idDigits = 8;

/** Members of a log line that have a place of their own, or that tell people nothing. */
const placed: ReadonlySet<string> = new Set(["time", "level", "event", "msg", "err", "part"]);

const styles: Readonly<Record<string, Style>> = {
  debug: "dim",
  info: "green",
  warn: "yellow",
  error: "red",
  fatal: "red",
};

/** A line of the log. */
export interface LogEntry {
  readonly time: string;
  readonly level: string;
  /** The name of the event in the catalogue; undefined for a line without one. */
  readonly event: string | undefined;
  readonly message: string;
  readonly members: JsonObject;
}

/**
 * A destination of a logger that writes to a stream, in colours where that is a terminal.
 * `isVerbose` as for `showEntry`.
 */
export function prettyDestination(stream: Writable, isVerbose: boolean): DestinationStream {
  const screen: Screen = {
    line: (text) => void stream.write(`${text}\n`),
    paint: (style, text) => styleText(style, text, { stream }),
  };
  return { write: (line) => showLogLine(line.trimEnd(), screen, isVerbose) };
}

/** Shows a line of the log; what is no log line, such as the last words of a crash, as it is. */
export function showLogLine(line: string, screen: Screen, isVerbose = false): void {
  const entry = readLogEntry(line);
  if (entry === undefined) showText(line, screen);
  else showEntry(entry, screen, isVerbose);
}

/** Shows text that is no log line. */
export function showText(line: string, screen: Screen): void {
  screen.line(printable(cut(line)));
}

/**
 * @param isVerbose whether everything is shown, with the stack of what went wrong, which is the
 *   worker's and no tool's
 */
export function showEntry(entry: LogEntry, screen: Screen, isVerbose: boolean): void {
  const { level, message, time, members } = entry;
  const isQuiet = level === "info" || level === "debug";
  const facts = Object.entries(members)
    .filter(([name, value]) => !placed.has(name) && !isEmpty(value))
    // Agents often give a request the id of its task.
    .filter(([name, value]) => name !== "id" || value !== members["taskId"])
    .map(([name, value]) => ({ name, text: factText(value), isText: typeof value === "string" }));
  const inline = facts.filter(
    ({ text }) => text.length <= maxInlineCharacters && (isQuiet || !/\s/.test(text)),
  );
  const below = facts.filter(
    (fact) => !inline.includes(fact) && (fact.isText || !isQuiet || isVerbose),
  );
  const words = [
    screen.paint("dim", time),
    screen.paint(styles[level] ?? "dim", level.padEnd(5)),
    printable(message),
    ...inline.map((fact) => screen.paint("dim", printable(`${fact.name}=${quoted(fact)}`))),
  ];
  screen.line(words.join(" "));
  for (const { name, text } of below) showBelow(`${name}: ${text}`, screen);
  showProblem(entry, screen, isVerbose);
}

/** Shows what went wrong, if an entry says it. */
export function showProblem({ members }: LogEntry, screen: Screen, withStack: boolean): void {
  const { err: error } = members;
  if (!isJsonObject(error)) return;
  const text = withStack ? (error["stack"] ?? error["message"]) : error["message"];
  if (typeof text === "string") showBelow(text, screen);
}

/** A line of the log as its members; undefined when it is none. */
export function readLogEntry(line: string): LogEntry | undefined {
  const members = parse(line);
  if (members === undefined) return undefined;
  const { time, level, event, msg } = members;
  if (typeof time !== "string" || typeof level !== "string") return undefined;
  return {
    time: new Date(time).toTimeString().slice(0, "hh:mm:ss".length),
    level,
    event: typeof event === "string" ? event : undefined,
    message: typeof msg === "string" ? msg : "",
    members,
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

function showBelow(text: string, screen: Screen): void {
  screen.line(printable(cut(text)).replaceAll(/^/gm, "    "));
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function factText(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.replaceAll(
    /\b[0-9a-f]{8}(?:[0-9a-f]{24,}|(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/g,
    (id) => id.slice(0, idDigits),
  );
}

function quoted({ text, isText }: { readonly text: string; readonly isText: boolean }): string {
  return !isText || /^[\w./:@%+-]+$/.test(text) ? text : JSON.stringify(text);
}

function cut(text: string): string {
  return text.length > maxShownCharacters ? `${text.slice(0, maxShownCharacters)}…` : text;
}
