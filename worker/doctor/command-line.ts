/**
 * What `str-worker doctor` is asked on its command line.
 */
import { parseArgs } from "node:util";
import { type StartChoice, startChoices } from "./attack-starts.ts";

/** What is asked for. */
export interface DoctorOptions {
  /** For machines, not for people. */
  readonly isJson: boolean;
  readonly isAttack: boolean;
  /** The one profile that is attacked, or undefined for all of them. */
  readonly profile: string | undefined;
  /** By which starts. */
  readonly start: StartChoice;
}

const options = {
  json: { type: "boolean" },
  attack: { type: "boolean" },
  profile: { type: "string" },
  start: { type: "string" },
} as const;

/** What can be asked for by name. */
const starts = startChoices.filter((choice) => choice !== "usual");
/** What options need that take a value. */
const valued = { profile: "the name of a profile", start: `one of ${starts.join(", ")}` } as const;

/** Reads what comes after `doctor`. A string says, in a sentence, what cannot be understood. */
export function readDoctorOptions(argv: readonly string[]): DoctorOptions | string {
  // Not strict: its own messages are about options in general.
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, tokens: true });
  const given = new Map<string, string | undefined>();
  for (const token of tokens) {
    if (token.kind !== "option" || !Object.hasOwn(options, token.name))
      return `doctor has no argument "${argv[token.index] ?? ""}"`;
    const { name, value } = token;
    if (given.has(name)) return `--${name} is given twice`;
    if (!(name in valued) && value !== undefined)
      return `--${name} takes no value, and "${value}" is given`;
    given.set(name, value);
  }
  const isAttack = given.has("attack");
  for (const [name, what] of Object.entries(valued)) {
    if (!given.has(name)) continue;
    const value = given.get(name) ?? "";
    if (value === "") return `--${name} needs ${what}`;
    if (value.startsWith("-")) return `--${name} needs ${what}, not "${value}"`;
    if (!isAttack) return `--${name} says what is attacked, and so needs --attack`;
  }
  const [profile, start] = [given.get("profile"), given.get("start")];
  const isChoice = (word: string): word is StartChoice => starts.some((known) => known === word);
  if (start !== undefined && !isChoice(start))
    return `--start needs ${valued.start}, not "${start}"`;
  return { isJson: given.has("json"), isAttack, profile, start: start ?? "usual" };
}
