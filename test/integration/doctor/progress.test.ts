/**
 * `str-worker doctor --attack` on a terminal: how far it is is seen there, and is no part of what
 * it prints.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { reachableDirectory } from "../../support/workers/rig.ts";

const entry = fileURLToPath(new URL("../../../worker/main.ts", import.meta.url));
const interrupt = "\u0003";

test(
  "attacks say on a terminal how far they are, and leave the output to what came of them",
  { tags: "full" },
  async () => {
    const base = await reachableDirectory();
    onTestFinished(() => rm(base, { recursive: true, force: true }));
    const output = join(base, "output");
    const command = `${process.execPath} ${entry} doctor --attack --profile restrictive > ${output}`;
    // Of script(1) its child has a terminal.
    const terminal = spawnTerminal(`${command}; echo ended with $?`);
    await terminal.says("1 of ");
    terminal.type(interrupt);
    await terminal.says("ended with 130");
    expect(terminal.text).toMatch(/\u001b\[2K0 of \d+ attacks; making everything ready\r/);
    expect(await readFile(output, "utf8")).toBe("");
  },
);

function spawnTerminal(command: string) {
  const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], {
    env: { PATH: process.env["PATH"], SHELL: "/bin/bash" },
    stdio: ["pipe", "pipe", "ignore"],
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const closed = once(child, "close");
  // The end of its terminal ends what runs on it.
  onTestFinished(async () => {
    child.kill();
    await closed;
  });
  return {
    get text() {
      return text;
    },
    type: (keys: string) => child.stdin.write(keys),
    async says(words: string): Promise<void> {
      while (!text.includes(words)) {
        if (child.exitCode !== null) throw new Error(text);
        await Promise.race([once(child.stdout, "data"), closed]);
      }
    },
  };
}
