/**
 * What `str-worker doctor` is asked on its command line.
 */
import { parseArgs } from "node:util";

/** What is asked for. */
export interface DoctorOptions {
  /** For machines, not for people. */
  readonly isJson: boolean;
  readonly isAttack: boolean;
  /** The one profile that is attacked, or undefined for all of them. */
  readonly profile: string | undefined;
}

const options = {
  json: { type: "boolean" },
  attack: { type: "boolean" },
  profile: { type: "string" },
} as const;

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
    if (name !== "profile" && value !== undefined)
      return `--${name} takes no value, and "${value}" is given`;
    given.set(name, value);
  }
  const [isJson, isAttack, profile] = [
    given.has("json"),
    given.has("attack"),
    given.get("profile"),
  ];
  if (given.has("profile")) {
    if (profile === undefined || profile === "") return "--profile needs the name of a profile";
    if (profile.startsWith("-")) return `--profile needs the name of a profile, not "${profile}"`;
    if (!isAttack) return "--profile says what is attacked, and so needs --attack";
  }
  return { isJson, isAttack, profile };
}
