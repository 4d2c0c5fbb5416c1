/**
 * The directories of a benchmark.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";

const program = `
  const { makeDirectory } = await import(${JSON.stringify(new URL("../../../bench/environment.ts", import.meta.url).href)});
  const made = [await makeDirectory("/var/tmp"), await makeDirectory("/var/tmp")];
  const [disposed] = [await makeDirectory("/var/tmp")];
  await disposed[Symbol.asyncDispose]();
  console.log(JSON.stringify([...made, disposed].map(({ path }) => path)));
  setInterval(() => undefined, 1_000);
`;

test.each(["SIGTERM", "SIGINT"] as const)("are removed when %s ends it", async (signal) => {
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const paths = JSON.parse(line.toString()) as string[];
  expect(paths.map((path) => existsSync(path))).toEqual([true, true, false]);
  child.kill(signal);
  expect(await exited).toEqual([null, signal]);
  expect(paths.filter((path) => existsSync(path))).toEqual([]);
});
