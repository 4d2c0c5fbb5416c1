/**
 * What keeps tools with packages from being served before any installer runs.
 */
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { PackageSettings } from "../../../worker/environments/open.ts";
import type { PackageFields } from "../../../worker/manifest/fields/packages.ts";
import type { Refusal } from "../../../worker/protocol/refusal.ts";
import type { SandboxBackend } from "../../../worker/sandbox/sandbox.ts";
import {
  openEnvironments,
  toolWith,
  writeFiles,
} from "../../support/packages/worker-environments.ts";

const never = new AbortController().signal;
/** Nothing here may come as far as a sandbox. */
const backend: Pick<SandboxBackend, "acquire" | "share"> = {
  acquire: () => Promise.reject(new Error("a sandbox was asked for")),
  share: () => Promise.reject(new Error("a directory was shared")),
};
let base: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "str-policy-"));
  // After what a test opens, which may write until it is closed.
  onTestFinished(() => rm(base, { recursive: true }));
  await mkdir(join(base, "tools"));
});

function refusal(
  fields: PackageFields,
  settings: Partial<PackageSettings>,
  runtime: "python" | "node" = "python",
): Promise<Refusal | undefined> {
  const { environments } = openEnvironments({ backend, base, settings });
  return environments.refuse(toolWith(fields, runtime), never);
}

describe("a tool with packages", () => {
  test("is not served where the policy is to refuse it", async () => {
    expect(await refusal({ package: "json" }, { policy: "refuse" })).toEqual({
      reason: "it names packages, and PACKAGE_POLICY is refuse",
      publicReason: "the worker installs no packages",
    });
    expect(await refusal({}, { policy: "refuse" })).toBeUndefined();
  });

  test("is served where the interpreter has them, and the policy is to check", async () => {
    expect(await refusal({ package: "json" }, { policy: "check" })).toBeUndefined();
    const reason = 'package "no-such-package" is not installed';
    expect(await refusal({ package: "no-such-package" }, { policy: "check" })).toEqual({
      reason,
      publicReason: reason,
    });
  });

  test("needs each name to be allowed, also in its files", async () => {
    await writeFiles(join(base, "tools"), {
      "r.txt": "good\nevil==1\n",
      "package-lock.json": JSON.stringify({
        lockfileVersion: 3,
        packages: {
          "": {},
          "node_modules/good/node_modules/evil": { version: "1.0.0", integrity: "sha512-x" },
        },
      }),
    });
    const allowed = { allowed: ["good"] };
    const refused = {
      reason: 'package "evil" is not in PACKAGE_ALLOW',
      publicReason: "one of its packages is not allowed by the worker",
    };
    expect(await refusal({ requirements: ["good", "evil>1"] }, allowed)).toEqual(refused);
    expect(await refusal({ requirements_file: "r.txt" }, allowed)).toEqual(refused);
    expect(await refusal({ requirements: ["evil"] }, allowed, "node")).toEqual(refused);
    expect(await refusal({ lockfile: "package-lock.json" }, allowed, "node")).toEqual(refused);
  });

  test("needs files that lie below the directory of tools and are accepted", async () => {
    await writeFile(join(base, "outside.txt"), "secret==1\n");
    await symlink(join(base, "outside.txt"), join(base, "tools/link.txt"));
    await writeFiles(join(base, "tools"), {
      "options.txt": "a\n--index-url https://user:secret@x\n",
      "unhashed.txt": "a==1\n",
      "directory/file": "",
    });
    const publicReason = "its list of packages cannot be used";
    const of = async (fields: PackageFields): Promise<string> => {
      const refused = await refusal(fields, {});
      expect(refused).toMatchObject({ publicReason });
      return refused!.reason;
    };
    expect(await of({ requirements_file: "gone.txt" })).toBe("gone.txt is not there");
    expect(await of({ requirements_file: "directory" })).toBe("directory is not a file");
    expect(await of({ requirements_file: "link.txt" })).toBe(
      "link.txt is a link to outside of the directory of tools",
    );
    expect(await of({ requirements_file: "options.txt" })).toBe(
      "options.txt: line 2: the option --index-url is refused; accepted: requirements, their hashes, comments",
    );
    expect(await of({ lockfile: "unhashed.txt" })).toBe(
      "unhashed.txt: a has no --hash; a lockfile has one for each line",
    );
  });

  test("has a reason where the directory of environments cannot be used", async () => {
    await writeFile(join(base, "file"), "");
    expect(await refusal({ package: "a" }, { directory: join(base, "file/below") })).toEqual({
      reason: expect.stringMatching(/^its packages could not be installed: PACKAGE_DIR cannot be/),
      publicReason: "its packages could not be installed",
      keepsServed: true,
    });
  });
});
