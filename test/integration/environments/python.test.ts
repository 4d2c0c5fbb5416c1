/**
 * Python packages, installed by real pip from a directory of wheels.
 */
import { readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, type TestContext } from "vitest";
import { writeWheel } from "../../support/packages/archives.ts";
import { openEnvironments, toolWith } from "../../support/packages/worker-environments.ts";
import { sharedBackends, temporaryDirectory } from "../sandbox/sandbox-host.ts";

const never = new AbortController().signal;
const backendOf = sharedBackends();

async function place(context: TestContext) {
  const backend = await backendOf(context);
  const base = await temporaryDirectory();
  return { backend, base, wheels: join(base, "wheels") };
}

describe("Python packages", () => {
  test("two versions of one package are installed side by side, and used again offline", async (context) => {
    const { backend, base, wheels } = await place(context);
    writeWheel(wheels, { name: "greeting", version: "1.0" });
    writeWheel(wheels, { name: "greeting", version: "2.0" });
    const [one, two] = ["==1.0", ">=2,<3"].map((version) =>
      toolWith({ package: "greeting", version }),
    );
    const { environments, lines } = openEnvironments({ backend, base });
    expect(await environments.refuse(one!, never)).toBeUndefined();
    expect(await environments.refuse(two!, never)).toBeUndefined();
    const [first, second] = [one, two].map((tool) => environments.installationOf(tool!)!);
    const versionIn = (dir: string) => readFile(join(dir, "packages", "greeting.py"), "utf8");
    expect(await versionIn(first!.dir)).toBe('VERSION = "1.0"\n');
    expect(await versionIn(second!.dir)).toBe('VERSION = "2.0"\n');
    expect((await stat(join(first!.dir, "packages"))).mode & 0o022).toBe(0);
    expect(lines.map(({ event }) => event)).toEqual([
      ...["packages.installing", "packages.installed"],
      ...["packages.installing", "packages.installed"],
    ]);

    const later = openEnvironments({
      backend: {
        share: () => Promise.reject(new Error("no sandbox")),
        acquire: () => Promise.reject(new Error("no sandbox")),
      },
      base,
    });
    expect(await later.environments.refuse(one!, never)).toBeUndefined();
    expect(later.environments.installationOf(one!)).toMatchObject({ key: first!.key });
    expect(later.lines).toEqual([]);
    expect(await readdir(join(base, "environments", "building"))).toEqual([]);
  });
});
