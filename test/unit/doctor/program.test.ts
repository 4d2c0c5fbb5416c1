/**
 * What is said to an attack's program, and what it says.
 */
import { describe, expect, test } from "vitest";
import {
  parseProgramAnswer,
  readProgramAnswer,
  withPythonNames,
} from "../../../worker/doctor/program.ts";

describe("a record for Python", () => {
  test("has names_like_this, also in records within", () => {
    expect(
      withPythonNames({ secretFile: "aB", limits: { memoryBytes: 1 }, nameServers: ["x"] }),
    ).toEqual({ secret_file: "aB", limits: { memory_bytes: 1 }, name_servers: ["x"] });
  });
});

describe("an answer of a program", () => {
  test("says whether it reached, and how one sees it", () => {
    const answer = { reached: true, evidence: "read it" };
    expect(readProgramAnswer({ ...answer, more: 1 })).toEqual(answer);
    expect(parseProgramAnswer(JSON.stringify(answer))).toEqual(answer);
  });

  test.each([null, [], "text", {}, { reached: "no", evidence: "" }, { reached: false }])(
    "is none if it is %j",
    (value) => {
      expect(readProgramAnswer(value)).toBeUndefined();
      expect(parseProgramAnswer(JSON.stringify(value))).toBeUndefined();
    },
  );

  test("is none if it is no JSON", () => {
    expect(parseProgramAnswer("Traceback")).toBeUndefined();
    expect(parseProgramAnswer("")).toBeUndefined();
  });
});
