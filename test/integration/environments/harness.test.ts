/**
 * `harness env`: the environments of PACKAGE_DIR.
 */
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeFacts } from "../../../worker/environments/facts.ts";
import { EnvironmentStore } from "../../../worker/environments/store.ts";
import { newId } from "../../../worker/support/ids.ts";
import { CliRun } from "../harness/cli-process.ts";

async function runIn(directory: string, args: readonly string[]) {
  await using cli = new CliRun(["env", ...args], { PACKAGE_DIR: directory });
  return await cli.finished;
}

test("lists environments, and removes those that no worker uses", async () => {
  const directory = await mkdtemp(join(tmpdir(), "str-env-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  await using store = await EnvironmentStore.open({ directory, uid: undefined, newId });
  const [used, unused] = ["a".repeat(64), "b".repeat(64)] as const;
  for (const key of [used, unused]) {
    const building = await store.startBuild(key);
    await writeFacts(building, {
      ...{
        runtime: "python",
        title: "six==1.16.0",
        names: [],
        installer: "pip",
        interpreter: "python3",
      },
      ...{ sizeBytes: 3_145_728, madeAt: "2026-01-01T00:00:00Z", tookMs: 1 },
    });
    await store.publish(key, building);
  }
  await store.use(used);
  const run = (...args: readonly string[]) => runIn(directory, args);
  const { stdout } = await run("list");
  expect(stdout.trimEnd().split("\n").sort()).toEqual([
    "aaaaaaaaaaaa\tpython\t3.0 MB\tin use\tsix==1.16.0",
    expect.stringMatching(/^bbbbbbbbbbbb\tpython\t3\.0 MB\tused \S+\tsix==1\.16\.0$/),
  ]);
  expect(await run("remove", "aaaa")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("a worker of this host uses the environment aaaa"),
  });
  expect(await run("remove", "bbbb")).toMatchObject({ exitCode: 0 });
  expect((await store.list()).map(({ key }) => key)).toEqual([used]);
  expect(await run("remove", "bbbb")).toMatchObject({ exitCode: 2 });
  expect(await run("remove")).toMatchObject({ exitCode: 2 });
});

test("shows the size of the cache, and empties it", async () => {
  const directory = await mkdtemp(join(tmpdir(), "str-env-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const cache = join(directory, "cache");
  await mkdir(join(cache, "pip-60001"), { recursive: true });
  await writeFile(join(cache, "pip-60001/archive"), Buffer.alloc(3_000_000));
  const run = (...args: readonly string[]) => runIn(directory, args);
  expect((await run("list")).stdout).toBe("cache\t2.9 MB\n");
  expect(await run("remove", "--cache")).toMatchObject({ exitCode: 0 });
  expect(await readdir(cache)).toEqual([]);
});
