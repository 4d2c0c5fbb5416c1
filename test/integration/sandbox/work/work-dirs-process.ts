/**
 * A second process that owns work directories, told what to do line by line. Run by `OtherWorker`.
 *
 * | command       | answer                                                            |
 * |---------------|-------------------------------------------------------------------|
 * | `open BASE`   | `opened ROOT` or `refused MESSAGE`                                |
 * | `take`        | `took PATH`                                                       |
 * | `dispose`     | `disposed`, when the last work directory taken was given back     |
 * | `close`       | `closed`, when everything was given back and removed              |
 *
 * A tree that cannot be removed is told as `unremovable PATH-OR-MESSAGE` before the answer.
 */
import { createInterface } from "node:readline";
import type { WorkDir } from "../../../../worker/sandbox/work/work-dir.ts";
import { WorkDirs } from "../../../../worker/sandbox/work/work-dirs.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { newId } from "../../../../worker/support/ids.ts";

let workDirs: WorkDirs | undefined;
let workDir: WorkDir | undefined;

async function carryOut(command: string, argument: string): Promise<string> {
  switch (command) {
    case "open":
      workDirs = await WorkDirs.open({
        base: argument,
        ownerId: undefined,
        newId,
        clock: systemClock,
        onRemoveFailed,
      });
      return `opened ${workDirs.root}`;
    case "take":
      workDir = await workDirs?.take();
      return `took ${workDir?.path}`;
    case "dispose":
      await workDir?.[Symbol.asyncDispose]();
      return "disposed";
    case "close":
      await workDirs?.[Symbol.asyncDispose]();
      return "closed";
    default:
      return `unknown ${command}`;
  }
}

function onRemoveFailed(error: unknown): void {
  say(`unremovable ${String(error)}`);
}

function say(line: string): void {
  process.stdout.write(`${line.replaceAll("\n", " ")}\n`);
}

for await (const line of createInterface({ input: process.stdin })) {
  const [command = "", ...words] = line.split(" ");
  try {
    say(await carryOut(command, words.join(" ")));
  } catch (error) {
    say(`refused ${String(error)}`);
  }
}
