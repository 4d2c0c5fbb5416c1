/**
 * What attacks know of system calls, against what the filter knows.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  type SyscallNumbers,
  inspectedCalls,
  refusedCalls,
  unfitCalls,
  unknownCalls,
} from "../../../worker/sandbox/syscalls/syscalls.ts";

const programs = fileURLToPath(new URL("../../../attacks/", import.meta.url));

async function say<T>(expression: string): Promise<T> {
  const program = `import json, system_calls\nfrom support import kernel\nprint(json.dumps(${expression}))`;
  const { stdout } = await promisify(execFile)("/usr/bin/python3", ["-B", "-c", program], {
    cwd: programs,
  });
  return JSON.parse(stdout) as T;
}

describe("attacks", () => {
  const filtered: Readonly<Record<string, SyscallNumbers>> = { ...refusedCalls, ...unknownCalls };

  test("make every call that the filter refuses, whatever its arguments", async () => {
    const made = await say<readonly string[]>("list(system_calls.ARGUMENTS)");
    expect(made.toSorted()).toEqual(Object.keys(filtered).toSorted());
  });

  test("and have its numbers on every architecture", async () => {
    const known = await say<Record<string, readonly (number | null)[]>>("kernel.NUMBERS");
    const named = { ...filtered, ...unfitCalls, ...inspectedCalls };
    for (const [name, { x64, arm64 }] of Object.entries(named)) {
      expect([name, known[name]]).toEqual([name, [x64 ?? null, arm64 ?? null]]);
    }
  });
});
