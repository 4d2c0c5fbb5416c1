/**
 * What the doctor understands on its command line, and what it says of the rest.
 */
import { describe, expect, test } from "vitest";
import { type DoctorOptions, readDoctorOptions } from "../../../worker/doctor/command-line.ts";

const nothing: DoctorOptions = {
  isJson: false,
  isAttack: false,
  profile: undefined,
  start: "usual",
};

describe("the doctor's command line", () => {
  test.each<[string, Partial<DoctorOptions>]>([
    ["", {}],
    ["--json", { isJson: true }],
    ["--attack", { isAttack: true }],
    ["--attack --profile mine", { isAttack: true, profile: "mine" }],
    ["--profile=mine --attack", { isAttack: true, profile: "mine" }],
    ["--attack --start pool", { isAttack: true, start: "pool" }],
    ["--start=all --attack", { isAttack: true, start: "all" }],
    ["--profile mine --json --attack", { isAttack: true, isJson: true, profile: "mine" }],
  ])("'%s' is understood", (line, asked) => {
    expect(readDoctorOptions(words(line))).toEqual({ ...nothing, ...asked });
  });

  test.each([
    ["--bogus", 'doctor has no argument "--bogus"'],
    ["--bogus=1", 'doctor has no argument "--bogus=1"'],
    ["-x", 'doctor has no argument "-x"'],
    ["--constructor", 'doctor has no argument "--constructor"'],
    ["standard", 'doctor has no argument "standard"'],
    ["--attack -- standard", 'doctor has no argument "--"'],
    ["--json=yes", '--json takes no value, and "yes" is given'],
    ["--attack --attack", "--attack is given twice"],
    ["--attack --profile a --profile=b", "--profile is given twice"],
    ["--attack --profile", "--profile needs the name of a profile"],
    ["--attack --profile=", "--profile needs the name of a profile"],
    ["--attack --profile --json", '--profile needs the name of a profile, not "--json"'],
    ["--attack --profile=--json", '--profile needs the name of a profile, not "--json"'],
    ["--start cold", "--start says what is attacked, and so needs --attack"],
    ["--attack --start", "--start needs one of cold, pool, template, all"],
    ["--attack --start --json", '--start needs one of cold, pool, template, all, not "--json"'],
    ["--attack --start warm", '--start needs one of cold, pool, template, all, not "warm"'],
    ["--attack --start usual", '--start needs one of cold, pool, template, all, not "usual"'],
    ["--attack --start cold --start=pool", "--start is given twice"],
    ["--profile standard", "--profile says what is attacked, and so needs --attack"],
  ])("'%s' is refused in a sentence", (line, problem) => {
    expect(readDoctorOptions(words(line))).toBe(problem);
  });
});

function words(line: string): readonly string[] {
  return line.split(" ").filter(Boolean);
}
