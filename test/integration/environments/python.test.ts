/**
 * Python packages, installed by real pip from a directory of wheels.
 */
import { readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, type TestContext, vi } from "vitest";
import { writeSourceArchive, writeWheel } from "../../support/packages/archives.ts";
import { installPatience } from "../../support/patience.ts";
import {
  offline,
  openEnvironments,
  keyOf,
  requirePip,
  toolWith,
  writeFiles,
} from "../../support/packages/worker-environments.ts";
import { sharedBackends, temporaryDirectory } from "../sandbox/sandbox-host.ts";

const never = new AbortController().signal;
const backendOf = sharedBackends();

async function place(context: TestContext) {
  requirePip(context);
  const backend = await backendOf(context);
  const base = await temporaryDirectory();
  return { backend, base, wheels: join(base, "wheels") };
}

describe("Python packages", () => {
  test(
    "two versions of one package are installed side by side, and used again offline",
    { tags: "full" },
    async (context) => {
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
    },
  );

  test(
    "are built once by two builders, over what dead ones left",
    { tags: "full" },
    async (context) => {
      const { backend, base, wheels } = await place(context);
      writeWheel(wheels, { name: "greeting", version: "1.0", requires: ["other>=1"] });
      writeWheel(wheels, { name: "other", version: "1.5" });
      const tool = toolWith({ requirements: ["greeting"] });
      const [one, two] = [openEnvironments({ backend, base }), openEnvironments({ backend, base })];
      const key = await keyOf(base, tool);
      const directory = join(base, "environments");
      // Of a builder that was killed, and of one whose environment lost its last file.
      await writeFiles(directory, {
        [`building/${key}.dead/packages/half.py`]: "",
        [`${key}/packages/greeting.py`]: "VERSION = 'broken'",
      });
      const refusals = await Promise.all(
        [one, two].map(({ environments }) => environments.refuse(tool, never)),
      );
      expect(refusals, JSON.stringify([one.lines, two.lines])).toEqual([undefined, undefined]);
      const events = [...one.lines, ...two.lines].map(({ event }) => event);
      expect(events.filter((event) => event === "packages.installing")).toHaveLength(1);
      const { dir } = two.environments.installationOf(tool)!;
      expect(dir).toBe(join(directory, key));
      expect(await readFile(join(dir, "packages/greeting.py"), "utf8")).toContain("1.0");
      expect(await readFile(join(dir, "packages/other.py"), "utf8")).toContain("1.5");
      expect(await readdir(join(directory, "building"))).toEqual([]);
    },
  );

  test(
    "that cannot be installed say why, again and again, and stop no others",
    { tags: "full" },
    async (context) => {
      const { backend, base, wheels } = await place(context);
      writeWheel(wheels, { name: "greeting", version: "1.0" });
      const rig = openEnvironments({
        ...{ backend, base, installs: "background", retryMs: { baseMs: 1, capMs: 1 } },
        environment: { ...offline, PIP_EXTRA_INDEX_URL: "http://me:hunter-two@127.0.0.1:9/simple" },
      });
      const { environments, lines } = rig;
      const absent = toolWith({ package: "absent" }, "python", "absent");
      const present = toolWith({ package: "greeting" }, "python", "present");
      const pending = {
        publicReason: "its packages are being installed",
        reason: "its packages are being installed",
        keepsServed: true,
      };
      expect(await environments.refuse(absent, never)).toEqual(pending);
      expect(await environments.refuse(present, never)).toEqual(pending);
      expect(environments.counts).toEqual({ ready: 0, installing: 2, failed: 0 });
      await vi.waitFor(async () => {
        expect(await environments.refuse(present, never)).toBeUndefined();
        expect(lines.filter(({ event }) => event === "packages.failed")).toHaveLength(2);
      }, installPatience);
      expect(await environments.refuse(absent, never)).toEqual({
        reason: "its packages could not be installed: pip ended with 1",
        publicReason: "its packages could not be installed",
        keepsServed: true,
      });
      const failed = lines.find(({ event }) => event === "packages.failed")!;
      expect(failed).toMatchObject({ tools: ["absent"], reason: "pip ended with 1" });
      expect(failed["output"]).toContain("No matching distribution found for absent");
      expect(environments.warnings).toEqual([
        'tool "absent": its packages could not be installed: pip ended with 1',
      ]);
      writeWheel(wheels, { name: "absent", version: "1.0" });
      await vi.waitFor(
        async () => expect(await environments.refuse(absent, never)).toBeUndefined(),
        installPatience,
      );
      expect(environments.counts).toEqual({ ready: 2, installing: 0, failed: 0 });
    },
  );

  test.for([{ UV_NO_BUILD: "1" }, { PIP_ONLY_BINARY: ":all:" }])(
    "run no code of a source archive with %j",
    { tags: "full" },
    async (variables, context) => {
      const { backend, base, wheels } = await place(context);
      writeSourceArchive(wheels, "curious", 'import sys\nprint("BUILT", file=sys.stderr)');
      const outputOf = async (more: Record<string, string>): Promise<unknown> => {
        const environment = { ...offline, ...more };
        const { environments, lines } = openEnvironments({ backend, base, environment });
        expect(await environments.refuse(toolWith({ package: "curious" }), never)).toBeDefined();
        return lines.at(-1)!["output"];
      };
      expect(await outputOf({})).toContain("BUILT");
      const output = await outputOf(variables);
      expect(output).toContain("No matching distribution found for curious");
      expect(output).not.toContain("BUILT");
    },
  );

  test(
    "are built in a sandbox, which sees no secret of the worker but the registry's",
    { tags: ["promise-S27", "promise-R12"] },
    async (context) => {
      const { backend, base, wheels } = await place(context);
      const secretFile = join(base, "secret.txt");
      await writeFile(secretFile, "seven seals");
      const netrcFile = join(base, "netrc");
      await writeFile(netrcFile, "machine index.invalid login me password open-sesame\n");
      const build = `
import glob, os, sys
def tried(act):
    try: return act()
    except Exception as error: return type(error).__name__
print("SEEN", sorted(os.environ), file=sys.stderr)
print("URL", os.environ["PIP_EXTRA_INDEX_URL"], file=sys.stderr)
print("NETRC", tried(lambda: open(os.environ["NETRC"]).read()), file=sys.stderr)
print("HOST", tried(lambda: open(${JSON.stringify(secretFile)}).read()), file=sys.stderr)
print("WRITE", tried(lambda: open("/usr/written", "w")), glob.glob("/sandbox/*"), file=sys.stderr)
`;
      writeSourceArchive(wheels, "curious", build);
      const environment = {
        ...offline,
        PIP_EXTRA_INDEX_URL: "http://user:hunter%2Dtwo@127.0.0.1:9/simple",
        AWS_SECRET_ACCESS_KEY: "not for builds",
        SOLACE_PASSWORD: "not for builds",
      };
      const { environments, lines } = openEnvironments({
        ...{ backend, base, environment, settings: { netrcFile } },
      });
      await environments.refuse(toolWith({ package: "curious" }), never);
      const output = String(lines.at(-1)!["output"]);
      expect(output).toMatch(/SEEN \[[^\]]*'PIP_NO_INDEX'/);
      expect(output).not.toMatch(/AWS|SOLACE/);
      expect(output).toContain("URL http://***@127.0.0.1:9/simple");
      expect(output).toContain("NETRC machine index.invalid login me password ***");
      expect(output).toContain("HOST FileNotFoundError");
      expect(output).toContain("WRITE OSError");
      expect(JSON.stringify(lines)).not.toMatch(/hunter|open-sesame|not for builds|seven/);
    },
  );
});
