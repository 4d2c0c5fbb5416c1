/**
 * npm packages, installed by real npm from a registry of the test's.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type NpmPackage, startNpmRegistry } from "../../support/packages/npm-registry.ts";
import { openEnvironments, toolWith } from "../../support/packages/worker-environments.ts";
import { sharedBackends, temporaryDirectory } from "../sandbox/sandbox-host.ts";

const never = new AbortController().signal;
const backendOf = sharedBackends();
const path = process.env["PATH"] ?? "";

const packages: readonly NpmPackage[] = [
  { name: "greeting", version: "1.0.0" },
  { name: "greeting", version: "1.2.0" },
  { name: "greeting", version: "2.0.0" },
  { name: "@scope/outer", version: "1.0.0", manifest: { dependencies: { greeting: "^1.0.0" } } },
  {
    name: "bundling",
    version: "1.0.0",
    manifest: { dependencies: { greeting: "1" }, bundleDependencies: ["greeting"] },
    files: { "node_modules/greeting/package.json": '{"name": "greeting", "version": "1.1.0"}' },
  },
  {
    name: "scripted",
    version: "1.0.0",
    manifest: { scripts: { install: "echo ran > installed.txt" } },
  },
];

async function registry(): Promise<Awaited<ReturnType<typeof startNpmRegistry>>> {
  const started = await startNpmRegistry(packages);
  onTestFinished(() => started[Symbol.asyncDispose]());
  return started;
}

async function versionIn(dir: string, name: string): Promise<unknown> {
  const text = await readFile(join(dir, "node_modules", name, "package.json"), "utf8");
  return (JSON.parse(text) as { version: unknown }).version;
}

describe("npm packages", () => {
  test(
    "are installed with what they need, and without their install scripts",
    { tags: "full" },
    async (context) => {
      const backend = await backendOf(context);
      const { url } = await registry();
      const base = await temporaryDirectory();
      const environment = { NPM_CONFIG_REGISTRY: url, PATH: path };
      const { environments, lines } = openEnvironments({ backend, base, environment });
      const requirements = ["@scope/outer", "scripted@1"];
      const plain = toolWith({ requirements }, "node");
      expect(await environments.refuse(plain, never), JSON.stringify(lines)).toBeUndefined();
      const { dir } = environments.installationOf(plain)!;
      expect(await versionIn(dir, "greeting")).toBe("1.2.0");
      expect(existsSync(join(dir, "node_modules/scripted/installed.txt"))).toBe(false);

      const scripted = toolWith({ requirements, install_scripts: true }, "node", "scripted");
      expect(await environments.refuse(scripted, never), JSON.stringify(lines)).toBeUndefined();
      const other = environments.installationOf(scripted)!.dir;
      expect(await readFile(join(other, "node_modules/scripted/installed.txt"), "utf8")).toBe(
        "ran\n",
      );
    },
  );

  test("are those of a lockfile, from the operator's registry with its token", async (context) => {
    const backend = await backendOf(context);
    const { url, requests, integrityOf } = await registry();
    const base = await temporaryDirectory();
    const lock = (integrity: string): string =>
      JSON.stringify({
        name: "mine",
        lockfileVersion: 3,
        packages: {
          "": { name: "mine", dependencies: { greeting: "^1.0.0" }, devDependencies: { dev: "1" } },
          "node_modules/greeting": {
            version: "1.0.0",
            resolved: "https://elsewhere.invalid/greeting/-/greeting-1.0.0.tgz",
            integrity,
          },
          "node_modules/dev": { integrity: "sha512-x", version: "1.0.0", dev: true },
        },
      });
    const npmrcFile = join(base, ".npmrc");
    const token = "npm_0123456789abcdef";
    await writeFile(npmrcFile, `registry=${url}\n//${new URL(url).host}/:_authToken=${token}\n`);
    await mkdir(join(base, "tools/a"), { recursive: true });
    const lockfile = "a/package-lock.json";
    const lockPath = join(base, "tools", lockfile);
    await writeFile(lockPath, lock(integrityOf("greeting", "1.0.0")));
    const options = { backend, base, environment: { PATH: path }, settings: { npmrcFile } };
    const { environments, lines } = openEnvironments(options);
    const tool = toolWith({ lockfile }, "node");
    expect(await environments.refuse(tool, never), JSON.stringify(lines)).toBeUndefined();
    const { dir } = environments.installationOf(tool)!;
    expect(await versionIn(dir, "greeting")).toBe("1.0.0");
    expect(requests.map(({ authorization }) => authorization)).toContain(`Bearer ${token}`);

    await writeFile(lockPath, lock(integrityOf("greeting", "2.0.0")));
    const refusal = await environments.refuse(tool, never);
    expect(refusal).toMatchObject({ publicReason: "its packages could not be installed" });
    const failed = lines.findLast(({ event }) => event === "packages.failed")!;
    expect(failed["output"]).toContain("EINTEGRITY");
    expect(JSON.stringify(lines)).not.toContain(token);
  });

  test(
    "are not fetched without an integrity of the lockfile",
    { tags: ["full", "promise-S28"] },
    async (context) => {
      const backend = await backendOf(context);
      const { url, requests, integrityOf } = await registry();
      const base = await temporaryDirectory();
      const environment = { NPM_CONFIG_REGISTRY: url, PATH: path };
      const { environments, lines } = openEnvironments({ backend, base, environment });
      const lockOf = (name: string, others: object): string =>
        JSON.stringify({
          lockfileVersion: 3,
          packages: {
            "": { dependencies: { [name]: "1" } },
            [`node_modules/${name}`]: {
              version: "1.0.0",
              integrity: integrityOf(name, "1.0.0"),
              dependencies: { greeting: "1" },
              bundleDependencies: ["greeting"],
            },
            ...others,
          },
        });
      const bundled = { version: "1.0.0", inBundle: true };
      const problemOf = async (name: string, lock: string): Promise<unknown> => {
        await mkdir(join(base, "tools"), { recursive: true });
        await writeFile(join(base, `tools/package-lock.json`), lock);
        const tool = toolWith({ lockfile: "package-lock.json" }, "node", name);
        const refusal = await environments.refuse(tool, never);
        if (refusal === undefined) return environments.installationOf(tool)!.dir;
        return lines.findLast(({ event }) => event === "packages.failed")?.["output"] ?? refusal;
      };

      const nested = (name: string): object => ({
        [`node_modules/${name}/node_modules/greeting`]: bundled,
      });
      const dir = await problemOf("whole", lockOf("bundling", nested("bundling")));
      expect(await versionIn(String(dir), "bundling/node_modules/greeting")).toBe("1.1.0");
      // The lockfile says that the archive has it, which it does not.
      await problemOf("lies", lockOf("@scope/outer", nested("@scope/outer")));
      const beside = { "node_modules/greeting": bundled };
      expect(await problemOf("beside", lockOf("bundling", beside))).toMatchObject({
        reason: expect.stringContaining('"node_modules/greeting" has no integrity'),
      });
      const paths = requests.map((request) => request.path);
      expect(paths.filter((each) => each.startsWith("/greeting"))).toEqual([]);
    },
  );
});
