/**
 * Workers with packages: killed while they build, many environments, and real registries.
 *
 * @module-tag full
 */
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { writeSourceArchive, writeWheel } from "../../support/packages/archives.ts";
import { writeFiles } from "../../support/packages/worker-environments.ts";
import { patience } from "../../support/patience.ts";
import {
  manifestText,
  reachableDirectory,
  type RigTool,
  startRig,
} from "../../support/workers/rig.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { runWorker } from "../../support/workers/worker-run.ts";

const path = { PATH: "/usr/local/bin:/usr/bin:/bin" };

/** A directory with a manifest, and the variables of a worker that prepares it. */
async function place(tools: Readonly<Record<string, RigTool>>) {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const manifest = join(base, "manifest.yaml");
  await writeFiles(base, { "python/misbehaving.py": "", "node/a.mjs": "" });
  await writeFile(manifest, manifestText(tools));
  const environment = {
    ...path,
    MANIFEST_PATH: manifest,
    TOOLS_PYTHON_DIR: join(base, "python"),
    TOOLS_NODE_DIR: join(base, "node"),
    TOOLS_WHEELS_DIR: join(base, "wheels"),
    PACKAGE_DIR: join(base, "environments"),
    SANDBOX_WORK_DIR: join(base, "work"),
  };
  return { base, environment, wheels: join(base, "wheels") };
}

describe("a worker that is killed while it builds", () => {
  test("leaves no lock, no process and no half environment behind", async () => {
    const { base, environment, wheels } = await place({
      slow: { function: "well", package: "slow" },
    });
    const offline = { ...environment, PIP_NO_INDEX: "1" };
    const archive = writeSourceArchive(
      wheels,
      "slow",
      "import time\nprint('STARTED', flush=True)\ntime.sleep(600)",
    );
    const building = join(base, "environments/building");
    {
      await using worker = new WorkerProcess(offline, ["--prepare"]);
      await vi.waitFor(async () => expect(await readdir(building)).toHaveLength(1), patience);
      worker.child.kill("SIGKILL");
      await worker.exited;
    }
    expect(await readdir(building)).toHaveLength(1);
    await rm(archive);
    writeWheel(wheels, { name: "slow", version: "1.0" });
    const { code, output } = await runWorker(offline, ["--prepare"]);
    expect(code, output).toBe(0);
    expect(await readdir(building)).toEqual([]);
    expect(await readdir(join(base, "environments/workers"))).toHaveLength(1);
  });
});

describe("a preparation", () => {
  test("has the tools of toolsets, and names those whose interpreter is not there", async () => {
    const { base, environment, wheels } = await place({
      own: { function: "well", package: "greeting" },
      later: { function: "well", package: "greeting", python: "3.99" },
    });
    writeWheel(wheels, { name: "greeting", version: "1.0" });
    await writeFiles(join(base, "toolsets/kit"), {
      "manifest.yaml":
        "version: 1\ntools:\n  say: {module: m, function: f, requirements_file: list.txt}\n",
      "list.txt": "greeting==1.0\n",
    });
    const more = {
      PIP_NO_INDEX: "1",
      TOOLSETS_DIR: join(base, "toolsets"),
      SANDBOX_PYTHONS: "3.99=/opt/none/bin/python3",
    };
    const { code, output } = await runWorker({ ...environment, ...more }, ["--prepare"]);
    expect(code, output).toBe(69);
    const { environments, problems } = JSON.parse(output.slice(output.indexOf("{\n"))) as {
      environments: readonly { tool: string; dir: string }[];
      problems: readonly string[];
    };
    expect(environments.map(({ tool }) => tool).sort()).toEqual(["kit__say", "own"]);
    for (const { dir } of environments)
      expect(existsSync(join(dir, "packages/greeting.py"))).toBe(true);
    expect(problems).toEqual([
      'tool "later": cannot use /opt/none/bin/python3 as the Python interpreter',
    ]);
  });
});

describe("twenty tools with twenty environments", () => {
  test("are installed four at a time, and served by the next worker as soon as it is ready", async () => {
    const names = Array.from({ length: 20 }, (_, index) => `pack${index}`);
    const tool = (name: string): RigTool => ({ function: "well", package: name });
    const tools = Object.fromEntries(names.map((name) => [name, tool(name)]));
    const { base, environment, wheels } = await place(tools);
    for (const name of names) writeWheel(wheels, { name, version: "1.0" });
    const packages = {
      ...path,
      PACKAGE_POLICY: "install",
      PIP_NO_INDEX: "1",
      PACKAGE_DIR: environment.PACKAGE_DIR,
      TOOLS_WHEELS_DIR: wheels,
    };
    const count = (lines: readonly string[], event: string): number =>
      lines.filter((line) => line.includes(`"${event}"`)).length;
    {
      await using rig = await startRig({ tools, environment: packages });
      await vi.waitFor(() => expect(count(rig.logLines, "packages.installed")).toBe(20), {
        timeout: 300_000,
        interval: 100,
      });
      expect(mostAtOnce(rig.logLines)).toBe(4);
    }
    expect(
      (await readdir(join(base, "environments"))).filter((name) => name.length === 64),
    ).toHaveLength(20);
    // The next worker has nothing to install from.
    await rm(wheels, { recursive: true });
    await using rig = await startRig({ tools, environment: packages });
    for (const name of names) expect(await rig.call(name)).toMatchObject({ kind: "success" });
    expect(count(rig.logLines, "packages.installing")).toBe(0);
    expect(count(rig.logLines, "tool.not_served")).toBe(0);
  });
});

/** How many installations were under way at once, at most, by the log. */
function mostAtOnce(lines: readonly string[]): number {
  let [now, most] = [0, 0];
  for (const line of lines) {
    if (line.includes('"packages.installing"')) most = Math.max(most, ++now);
    if (line.includes('"packages.installed"')) now--;
  }
  return most;
}

describe("the real registries", () => {
  test("give PyPI's and npm's packages, with what they need", async (context) => {
    await skipWithout(context, "https://pypi.org/simple/six/");
    await skipWithout(context, "https://registry.npmjs.org/ms");
    const node = { runtime: "node", module: "a.mjs", function: "run" } as const;
    const { environment } = await place({
      python: { function: "well", package: "python-dateutil", version: "==2.9.0" },
      node: { ...node, package: "debug", version: "4.4.0" },
    });
    const certificates = {
      PIP_CERT: process.env["PIP_CERT"] ?? "",
      NODE_EXTRA_CA_CERTS: process.env["NODE_EXTRA_CA_CERTS"] ?? "",
    };
    const { code, output } = await runWorker({ ...environment, ...certificates }, ["--prepare"]);
    expect(code, output).toBe(0);
    const { environments } = JSON.parse(output.slice(output.indexOf("{\n"))) as {
      environments: readonly { tool: string; dir: string }[];
    };
    const dirOf = (name: string): string => environments.find(({ tool }) => tool === name)!.dir;
    expect(existsSync(join(dirOf("python"), "packages/six.py"))).toBe(true);
    expect(await readFile(join(dirOf("node"), "node_modules/ms/package.json"), "utf8")).toContain(
      '"ms"',
    );
  });
});

/** Skips the test where the address is not reached. */
async function skipWithout({ skip }: TestContext, url: string): Promise<void> {
  const problem = await new Promise<string | undefined>((resolve) => {
    get(url, (response) => {
      response.destroy();
      resolve(undefined);
    }).on("error", (error) => resolve(error.message));
  });
  if (problem !== undefined) skip(`${url} is not reached: ${problem}`);
}
