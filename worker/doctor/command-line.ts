/**
 * Parses the command line of `str-worker doctor`.
 */
import { parseArgs } from "node:util";
import { type StartChoice, startChoices } from "./attacks/attack-starts.ts";

/** Options of the doctor. */
export interface DoctorOptions {
  /** Prints JSON instead of a table. */
  readonly isJson: boolean;
  readonly isAttack: boolean;
  /** The attacked profile; undefined for all. */
  readonly profile: string | undefined;
  /** The attacked starts. */
  readonly start: StartChoice;
}

const options = {
  json: { type: "boolean" },
  attack: { type: "boolean" },
  profile: { type: "string" },
  start: { type: "string" },
} as const;

/** Values of `--start`. */
const starts = startChoices.filter((choice) => choice !== "usual");
/** Values of options, in words. */
const valued = { profile: "the name of a profile", start: `one of ${starts.join(", ")}` } as const;

/** Text of `str-worker doctor --help`. */
export const doctorUsage = `Usage: str-worker doctor [--json] [--attack [--profile NAME] [--start KIND]] [--help]

Says what this host allows sandboxes, and how to give what is missing. With --attack it runs
hostile tools in this host's sandboxes instead, and says what was held. It needs neither broker,
manifest nor tools, and reads no other variables than LOG_LEVEL, LOG_FORMAT and those called
SANDBOX_...: str-worker --help lists them.

  --json            for machines
  --attack          run hostile tools; it takes some minutes, and needs Python
  --profile NAME    under this profile only; without it under each that has a sandbox
  --start KIND      by one start of calls: cold, pool, template, or all; otherwise cold and
                    what tools of the profile get
  --help            print this text; -h does, too

Exit codes:
  0                 what SANDBOX_MINIMUM asks for is held; every attack is held that should be
  1                 it is not
  64                an argument is not understood
  78                a variable or the profiles file is not accepted, there is no such profile,
                    or bubblewrap or, with --attack, Python cannot be used
  130, 143          stopped by SIGINT or SIGTERM

docs/doctor.md and docs/attacks.md tell how to read what it prints.
`;

/** Parses the arguments after `doctor`. Returns a sentence for an argument that is not accepted. */
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
