/**
 * A tool that changes the language under the runner's feet, as libraries and test helpers do, keeps
 * its answer.
 */
import { afterAll, expect, test } from "vitest";
import { removeWorkDirs, runBody, statuses } from "./run-node-tool.ts";

afterAll(removeWorkDirs);

type ChangeCase = [what: string, change: string];

const usualChange: readonly ChangeCase[] = [
  ["JSON", "globalThis.JSON = undefined; "],
  ["Promise", "globalThis.Promise = class {}"],
  ["process.exit", "process.exit = process.reallyExit = () => {}"],
  [
    "fs",
    `const fs = (await import("node:fs")).default;
     const { syncBuiltinESMExports } = await import("node:module");
     for (const name of ["writeFileSync", "renameSync", "writeSync", "write", "openSync", "unlinkSync"]) fs[name] = () => { throw new Error("no") };
     syncBuiltinESMExports()`,
  ],
];
const otherChange: readonly ChangeCase[] = [
  ["JSON.stringify", "JSON.stringify = () => { throw new Error('no') }"],
  [
    "the timers",
    "globalThis.setTimeout = globalThis.setImmediate = () => { throw new Error('no') }",
  ],
  ["the console", "globalThis.console = undefined"],
  ["process", "globalThis.process = undefined"],
  ["process.emit", "process.removeAllListeners(); process.on = () => {}"],
  ["Buffer", "globalThis.Buffer = undefined"],
  [
    "Object.prototype",
    "Object.prototype.extra = 1; Object.prototype.encoding = 'hex'; Object.prototype.flag = 'r'",
  ],
  [
    "Array.prototype",
    "Array.prototype.extra = 1; Array.prototype.join = Array.prototype.push = undefined",
  ],
  ["the current directory", "process.chdir('/')"],
];
const showChange = async ([, change]: ChangeCase) => {
  const run = await runBody(
    `${change}; ctx.sendStatus("sent"); return { list: [1, "two"], at: new Date(0) }`,
  );
  expect(run.resultText).toBe(
    '{"result":{"list":[1,"two"],"at":"1970-01-01T00:00:00.000Z"},"outputs":{}}',
  );
  expect(run).toMatchObject({ exitCode: 0, stderr: "" });
  expect(statuses(run)).toEqual(["sent"]);
};

test.for(usualChange)("%s", showChange);
test.for(otherChange)("%s", { tags: "full" }, showChange);
