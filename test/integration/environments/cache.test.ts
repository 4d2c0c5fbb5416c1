/**
 * The caches of real installers, with registries that count downloads.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import type { PackageFields } from "../../../worker/manifest/fields/packages.ts";
import { writeSourceArchive, writeWheel } from "../../support/packages/archives.ts";
import { startNpmRegistry } from "../../support/packages/npm-registry.ts";
import { startPythonRegistry } from "../../support/packages/python-registry.ts";
import {
  type EnvironmentsRig,
  openEnvironments,
  requirePip,
  toolWith,
  writeFiles,
} from "../../support/packages/worker-environments.ts";
import { npmPackages } from "../../support/packages/npm-packages.ts";
import { pypiPackages } from "../../support/pypi-packages.ts";
import { sharedBackends, temporaryDirectory } from "../sandbox/sandbox-host.ts";

const MiB = 1024 * 1024;
const never = new AbortController().signal;
const backendOf = sharedBackends();
const [on, off] = [{ cacheMaxBytes: 64 * MiB }, { cacheMaxBytes: 0 }];
const run = promisify(execFile);

/** What is installed with its cache by a Python installer from a registry of the test's. */
async function pythonPlace(context: TestContext, installer: "pip" | "uv") {
  if (installer === "pip") requirePip(context);
  const uvBin =
    installer === "uv" ? join(await pypiPackages(context, ["uv"]), "bin", "uv") : undefined;
  const backend = await backendOf(context);
  const base = await temporaryDirectory();
  const archives = join(base, "archives");
  const registry = await startPythonRegistry(archives);
  onTestFinished(() => registry[Symbol.asyncDispose]());
  const open = (settings: object = on): EnvironmentsRig =>
    openEnvironments({
      ...{ backend, base, settings: { uvBin, ...settings } },
      // pip keeps nothing of other hosts that it reaches without TLS.
      environment: {
        PIP_INDEX_URL: registry.url,
        PIP_TRUSTED_HOST: "127.0.0.1",
        PATH: "/usr/bin:/bin",
      },
    });
  const install = async (rig: EnvironmentsRig, fields: PackageFields): Promise<string> => {
    const tool = toolWith(fields);
    expect(await rig.environments.refuse(tool, never), JSON.stringify(rig.lines)).toBeUndefined();
    return join(rig.environments.installationOf(tool)!.dir, "packages");
  };
  return { base, archives, registry, open, install, cache: join(base, "environments/cache") };
}

/** A build that leaves what it sees of the cache in it, and in what it prints. */
const curiousBuild = `
import os, sys
def marked(directory):
    try:
        open(os.path.join(directory, "mark"), "w").close()
        return "MARKED"
    except OSError as error: return type(error).__name__
print("CACHE", marked("/sandbox/cache"), sorted(os.listdir("/sandbox")), file=sys.stderr)
`;

/** With what `npm test` runs of both installers. */
const installers = [
  { installer: "pip", tags: ["full"] },
  { installer: "uv", tags: [] },
] as const;

describe.for(installers)("the cache of $installer", ({ installer, tags }) => {
  test("has another set of packages download nothing again", { tags: "full" }, async (context) => {
    const { archives, registry, open, install } = await pythonPlace(context, installer);
    writeWheel(archives, { name: "big", version: "1.0" });
    writeWheel(archives, { name: "small", version: "1.0" });
    const rig = open();
    await install(rig, { requirements: ["big"] });
    const first = registry.downloads.length;
    const both = await install(rig, { requirements: ["big", "small"] });
    expect(await readdir(both)).toEqual(expect.arrayContaining(["big.py", "small.py"]));
    const second = registry.downloads.slice(first);
    expect(new Set(second)).toEqual(new Set(["small-1.0-py3-none-any.whl"]));

    await install(open(off), { requirements: ["big==1.0"] });
    expect(registry.downloads.at(-1)).toBe("big-1.0-py3-none-any.whl");
  });

  test(
    "is not in a build that runs code of packages",
    { tags: ["promise-S33", ...tags] },
    async (context) => {
      const { archives, open, cache } = await pythonPlace(context, installer);
      const { environments, lines } = open();
      writeSourceArchive(archives, "curious", curiousBuild);
      expect(await environments.refuse(toolWith({ package: "curious" }), never)).toBeDefined();
      expect(lines.at(-1)!["output"]).toContain("CACHE FileNotFoundError");
      await expectNoMark(cache, installer);
    },
  );
});

describe("the cache of pip", () => {
  test(
    "is not in a build that runs code of an archive which a wheel requires by its URL",
    { tags: ["promise-S33", "full"] },
    async (context) => {
      const { archives, registry, open, cache } = await pythonPlace(context, "pip");
      const { environments, lines } = open();
      writeSourceArchive(archives, "curious", curiousBuild);
      const link = `curious @ ${registry.urlOf("curious-1.0.tar.gz")}`;
      writeWheel(archives, { name: "linking", version: "1.0", requires: [link] });
      expect(await environments.refuse(toolWith({ package: "linking" }), never)).toBeDefined();
      expect(lines.at(-1)!["output"]).toContain("CACHE FileNotFoundError");
      await expectNoMark(cache, "pip");
    },
  );
});

async function expectNoMark(cache: string, installer: string): Promise<void> {
  const [directory = ""] = await readdir(cache);
  expect(directory).toMatch(RegExp(`^${installer}`));
  expect(await readdir(join(cache, directory))).not.toContain("mark");
}

describe("the cache of npm", () => {
  test(
    "has another set of packages download nothing again, and is not there for install scripts",
    { tags: ["promise-S33", "full"] },
    async (context) => {
      const backend = await backendOf(context);
      const install = "ls -d /sandbox/cache > seen.txt 2>&1 || true";
      const {
        url,
        requests,
        [Symbol.asyncDispose]: close,
      } = await startNpmRegistry([
        { name: "big", version: "1.0.0" },
        { name: "small", version: "1.0.0", manifest: { scripts: { install } } },
      ]);
      onTestFinished(close);
      const environment = { NPM_CONFIG_REGISTRY: url, PATH: process.env["PATH"] ?? "" };
      const base = await temporaryDirectory();
      const { environments, lines } = openEnvironments({
        ...{ backend, base, environment, settings: on },
      });
      const archives = (): readonly string[] =>
        requests.map(({ path }) => path).filter((path) => path.endsWith(".tgz"));
      const once = ["/big/-/big-1.0.0.tgz", "/small/-/small-1.0.0.tgz"];
      for (const requirements of [["big"], ["big", "small"]]) {
        const tool = toolWith({ requirements }, "node");
        expect(await environments.refuse(tool, never), JSON.stringify(lines)).toBeUndefined();
      }
      expect(archives()).toEqual(once);

      const scripted = toolWith({ requirements: ["big", "small"], install_scripts: true }, "node");
      expect(await environments.refuse(scripted, never), JSON.stringify(lines)).toBeUndefined();
      const { dir } = environments.installationOf(scripted)!;
      const seen = readFileSync(join(dir, "node_modules/small/seen.txt"), "utf8");
      expect(seen).toContain("No such file or directory");
      expect([...archives()].sort()).toEqual([...once, ...once].sort());
    },
  );

  test(
    "is not in a build by an old version, which runs scripts of packages from git",
    { tags: ["promise-S33", "full"] },
    async (context) => {
      const backend = await backendOf(context);
      const base = await temporaryDirectory();
      const old = await npmPackages(context, ["npm@10.8.2"]);
      const repository = await gitServer(base, {
        "package.json": JSON.stringify({
          ...{ name: "cloned", version: "1.0.0" },
          scripts: { prepare: "touch ran.txt /sandbox/cache/mark || true" },
        }),
      });
      const dependencies = { cloned: repository };
      const { url, [Symbol.asyncDispose]: close } = await startNpmRegistry([
        { name: "outer", version: "1.0.0", manifest: { dependencies } },
      ]);
      onTestFinished(close);
      const environment = { NPM_CONFIG_REGISTRY: url, PATH: join(old, "node_modules/.bin") };
      const { environments, lines } = openEnvironments({
        ...{ backend, base, environment, settings: on },
      });
      const tool = toolWith({ requirements: ["outer"] }, "node");
      expect(await environments.refuse(tool, never), JSON.stringify(lines)).toBeUndefined();
      const { dir } = environments.installationOf(tool)!;
      expect(existsSync(join(dir, "node_modules/cloned/ran.txt"))).toBe(true);
      await expectNoMark(join(base, "environments/cache"), "npm");
    },
  );
});

/** URL of a repository with these files, until the end of the test. */
async function gitServer(base: string, files: Readonly<Record<string, string>>): Promise<string> {
  const repository = join(base, "repository");
  await writeFiles(repository, files);
  const git = (...argv: readonly string[]) =>
    run("git", ["-c", "user.name=test", "-c", "user.email=test@invalid", ...argv], {
      cwd: repository,
    });
  await git("init", "--quiet");
  await git("add", ".");
  await git("commit", "--quiet", "--message", "all");
  await git("update-server-info");
  const server = createServer((request, response) => {
    const [file = ""] = (request.url ?? "").split("?");
    const path = join(repository, file);
    if (existsSync(path)) response.end(readFileSync(path));
    else response.writeHead(404).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `git+http://127.0.0.1:${(server.address() as AddressInfo).port}/.git`;
}
