/**
 * Which interpreter a tool gets, and when each is opened.
 */
import { describe, expect, test } from "vitest";
import {
  Interpreters,
  type OpenInterpreter,
  refuseInterpreter,
} from "../../../worker/runners/interpreters.ts";
import { SandboxError } from "../../../worker/sandbox/sandbox.ts";
import { tool } from "../manifest/fixtures.ts";

/** Versions of programs that can be opened. */
const installed: Record<string, string> = {
  "/usr/bin/python3": "3.11.2",
  "/opt/python3.12/bin/python3": "3.12.1",
  "/opt/science/bin/python": "3.10.13",
  "/opt/odd/bin/python": "3.1",
};

function setUp(named?: ReadonlyMap<string, string>) {
  const events: string[] = [];
  const open = async (program: string): Promise<OpenInterpreter> => {
    events.push(`open ${program}`);
    const version = installed[program];
    if (version === undefined) throw new SandboxError(`cannot use ${program}`);
    return {
      program,
      version,
      sources: [{ path: program, depth: "listing" }],
      [Symbol.asyncDispose]: async () => void events.push(`close ${program}`),
    };
  };
  const usual: OpenInterpreter = {
    program: "/usr/bin/python3",
    version: "3.11.2",
    sources: [{ path: "/usr/bin/python3", depth: "listing" }],
    [Symbol.asyncDispose]: async () => void events.push("close the usual one"),
  };
  const interpreters = new Interpreters({ usual, variable: "SANDBOX_PYTHONS", named, open });
  const programOf = async (interpreter?: string) =>
    (await interpreters.of({ interpreter })).program;
  return { interpreters, programOf, events };
}

const named = new Map([
  ["3.12", "/opt/python3.12/bin/python3"],
  ["science", "/opt/science/bin/python"],
  ["3.10", "/opt/odd/bin/python"],
  ["3.9", "/opt/missing/bin/python"],
]);

describe("an interpreter", () => {
  test.each([
    [undefined, "/usr/bin/python3"],
    ["3.12", "/opt/python3.12/bin/python3"],
    ["science", "/opt/science/bin/python"],
    ["/opt/science/bin/python", "/opt/science/bin/python"],
    ["/usr/bin/python3", "/usr/bin/python3"],
    ["3.11", "/usr/bin/python3"],
    ["3.11.2", "/usr/bin/python3"],
  ])("that a tool calls %s is %s", async (wanted, program) => {
    await using scene = setUp(named).interpreters;
    expect((await scene.of({ interpreter: wanted })).program).toBe(program);
  });

  test.each([
    ["3.1", "3.1", "allows 3.12, science, 3.10, 3.9"],
    ["/usr/bin/env", "/usr/bin/env", "allows 3.12, science, 3.10, 3.9"],
    ["/opt/python3.12/bin/../bin/python3", "/opt/python3.12/bin/../bin/python3", "allows"],
  ])("that is not allowed is refused, and not opened: %s", async (wanted, shown, allows) => {
    const { programOf, events } = setUp(named);
    await expect(programOf(wanted)).rejects.toThrow(
      `interpreter "${shown}" is not allowed: SANDBOX_PYTHONS ${allows}`,
    );
    expect(events).toEqual([]);
  });

  test("is refused where none is allowed", async () => {
    const { interpreters } = setUp();
    expect(await refuseInterpreter(interpreters, tool("a", { interpreter: "3.12" }))).toEqual({
      reason: 'interpreter "3.12" is not allowed: SANDBOX_PYTHONS is not set',
      publicReason: "the worker has no such interpreter",
    });
    expect(await refuseInterpreter(interpreters, tool("a"))).toBeUndefined();
  });

  test("whose name promises another version is refused", async () => {
    await expect(setUp(named).programOf("3.10")).rejects.toThrow(
      "SANDBOX_PYTHONS has /opt/odd/bin/python for 3.10, but its version is 3.1",
    );
  });

  test("is opened when the first tool needs it, once, and closed with the others", async () => {
    const { interpreters, programOf, events } = setUp(named);
    await Promise.all(["3.12", "/opt/python3.12/bin/python3", "3.12"].map(programOf));
    expect(events).toEqual(["open /opt/python3.12/bin/python3"]);
    expect(interpreters.sources.map(({ path }) => path)).toEqual([
      "/usr/bin/python3",
      "/opt/python3.12/bin/python3",
    ]);
    await interpreters[Symbol.asyncDispose]();
    expect(events.slice(1)).toEqual(["close the usual one", "close /opt/python3.12/bin/python3"]);
  });

  test("that cannot be used is tried again with the next check", async () => {
    const { interpreters, programOf, events } = setUp(named);
    const refusal = await refuseInterpreter(interpreters, tool("a", { interpreter: "3.9" }));
    expect(refusal?.reason).toBe("cannot use /opt/missing/bin/python");
    await expect(programOf("3.9")).rejects.toThrow("cannot use");
    expect(events).toEqual(["open /opt/missing/bin/python", "open /opt/missing/bin/python"]);
  });
});
