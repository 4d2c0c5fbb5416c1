/**
 * What processes that use the library leave when they are killed, until the next one of the same
 * user opens a backend.
 *
 * @module-tag full
 */
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { promisify } from "node:util";
import { describe, expect, test, vi } from "vitest";
import {
  commandLines,
  processesWith,
  temporaryDirectory,
} from "../../integration/sandbox/sandbox-host.ts";
import { runscProgram } from "../../support/containers/gvisor-backend.ts";
import { daemons } from "../../support/containers/kept-containers.ts";
import { patience } from "../../support/patience.ts";
import { HoldingProcess } from "../../support/runtime/holding-process.ts";

const run = promisify(execFile);

describe.each(["docker", "containerd"] as const)("containers of %s", (kind) => {
  test("end when their process was killed and another one opens the backend", async (context) => {
    const { variables, owners } = await daemons[kind](context);
    const temporary = await temporaryDirectory();
    const options = { kind, variables, temporary };
    await using killed = await HoldingProcess.running(options);
    await using living = await HoldingProcess.running(options);
    await killed.kill();
    const before = await owners();
    expect(before).toContain(killed.marker);
    expect(before).toContain(living.marker);
    expect(await HoldingProcess.openOnce(options)).toBe("open\n");
    const after = await owners();
    expect(after).not.toContain(killed.marker);
    expect(after).toContain(living.marker);
    const [base = ""] = await readdir(temporary);
    const homes = await readdir(`${temporary}/${base}`);
    expect(homes.map((name) => name.split("-")[0])).toEqual([String(living.child.pid)]);
  });
});

describe("sandboxes of gVisor", () => {
  test("end with their process, and by the next one where their guard is dead, too", async (context) => {
    const variables = { SANDBOX_RUNSC_BIN: await runscProgram(context) };
    const options = { kind: "gvisor", variables, temporary: await temporaryDirectory() } as const;
    await using guarded = await HoldingProcess.running(options);
    await using killed = await HoldingProcess.running(options);
    await using living = await HoldingProcess.running(options);
    await guarded.kill();
    await vi.waitFor(async () => expect(await sandboxesOf(guarded)).toEqual([]), patience);
    // It would start another guard.
    killed.child.kill("SIGSTOP");
    await endGuards(killed);
    await killed.kill();
    expect(await sandboxesOf(killed)).not.toEqual([]);
    expect(await HoldingProcess.openOnce(options)).toBe("open\n");
    expect(await sandboxesOf(killed)).toEqual([]);
    expect(await sandboxesOf(living)).not.toEqual([]);
  });
});

function sandboxesOf({ marker }: HoldingProcess): Promise<number[]> {
  return processesWith(marker);
}

async function endGuards({ child: { pid } }: HoldingProcess): Promise<void> {
  const { stdout } = await run("pgrep", ["--parent", String(pid)]);
  const lines = await commandLines();
  for (const id of stdout.trim().split("\n").map(Number))
    if (lines.get(id)?.includes("str-orphans") === true) process.kill(id, "SIGKILL");
}
