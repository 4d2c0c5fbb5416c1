/**
 * Releases a stand-in package from a temporary repository: real git, real npm, no network.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ReleaseRefused, release } from "../../../scripts/release/release.ts";
import { carriedVersions, carriers } from "../../../scripts/release/versions.ts";
import { root as project } from "../../package/processes.ts";

const name = "stand-in";
const date = "2026-11-28";
const from = carriedVersions(project)[0]!.versions[0]!;
const version = "7.0.0";
const changelog = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n";

let root: string;
let printed: string;

const git = (...args: readonly string[]): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: "pipe" }).trim();
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const commit = (): void => {
  git("add", "--all");
  git("commit", "--quiet", "--allow-empty", "--message", "A change");
};
/** `.ci/run` itself, over this package's own scripts. */
const runCi = (): void => {
  execFileSync(join(root, ".ci/run"), { stdio: "pipe" });
};
const tryRelease = (wanted = version, isDryRun = false): void => {
  const print = (text: string): void => {
    printed += `${text}\n`;
  };
  release({ root, version: wanted, isDryRun, image: false, date, print });
};
const standIn = (scripts: Record<string, string>, repository?: string): string => {
  const manifest = { name, version: from, files: ["index.js"], scripts, repository };
  return `${JSON.stringify(manifest, null, 2)}\n`;
};
const passing = { demo: "true", check: "true", test: "true" };

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "release-"));
  onTestFinished(() => {
    rmSync(root, { recursive: true });
  });
  printed = "";
  git("init", "--quiet", "--initial-branch", "main");
  git("config", "user.name", "Test");
  git("config", "user.email", "test@example.com");
  for (const { path } of carriers) write(path, readFileSync(join(project, path), "utf8"));
  write("package.json", standIn({ ...passing, prepack: "echo 1 > index.js" }));
  const own = { name, version: from };
  const lock = { ...own, lockfileVersion: 3, requires: true, packages: { "": own } };
  write("package-lock.json", `${JSON.stringify(lock, null, 2)}\n`);
  write("index.js", "");
  write("CHANGELOG.md", changelog);
  write(".gitignore", "/release/\nindex.js\n");
  write(".npmrc", "offline=true\nupdate-notifier=false\n");
  mkdirSync(join(root, ".ci"));
  cpSync(join(project, ".ci/run"), join(root, ".ci/run"));
  chmodSync(join(root, ".ci/run"), 0o755);
  commit();
});

describe("a release of a tested commit", () => {
  test(
    "makes files, a commit and a tag of one version, and prints how to publish",
    { tags: "full" },
    () => {
      runCi();
      tryRelease();

      const directory = join("release", version);
      for (const line of read(join(directory, "SHA256SUMS")).trim().split("\n")) {
        const [sum, file] = line.split("  ");
        const content = readFileSync(join(root, directory, file!));
        expect(createHash("sha256").update(content).digest("hex")).toBe(sum);
      }
      const packed = `${name}-${version}`;
      const tarball = join(root, directory, `${packed}.tgz`);
      const files = execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" });
      expect(files).toContain("package/index.js");
      const sbom = JSON.parse(read(join(directory, `${packed}.cdx.json`))) as unknown;
      expect(sbom).toMatchObject({
        bomFormat: "CycloneDX",
        metadata: { component: { name, version } },
      });

      expect(git("log", "-1", "--format=%s")).toBe(`Release ${version}`);
      expect(git("cat-file", "-t", `v${version}`)).toBe("tag");
      expect(git("rev-parse", `v${version}^{commit}`)).toBe(git("rev-parse", "HEAD"));
      expect(git("status", "--porcelain")).toBe("");
      for (const { versions } of carriedVersions(root)) {
        expect(new Set(versions)).toEqual(new Set([version]));
      }
      expect(read("CHANGELOG.md")).toContain(`## [Unreleased]\n\n## [${version}] - ${date}\n`);
      expect(printed).toContain("WITHOUT PROVENANCE");
      expect(printed).toContain("package.json names no repository");
      expect(printed).toContain(`\n  npm publish ./release/${version}/*.tgz`);
      expect(printed).toContain("docker buildx build --sbom=true --provenance=mode=max");
    },
  );

  test("shows everything and changes nothing in a dry run", { tags: "full" }, () => {
    write("package.json", standIn(passing, "https://github.com/example/stand-in"));
    commit();
    runCi();
    const before = git("rev-parse", "HEAD");
    tryRelease(version, true);
    for (const { path } of carriers) expect(printed).toContain(`${path}: ${from} becomes`);
    expect(printed).toContain(`[Unreleased] becomes [${version}] - ${date}`);
    expect(printed).toContain("npm publish --provenance");
    expect(git("rev-parse", "HEAD")).toBe(before);
    expect(git("status", "--porcelain")).toBe("");
    expect(git("tag")).toBe("");
    expect(existsSync(join(root, "release"))).toBe(false);
  });

  test("restores the tree when the build fails", { tags: "full" }, () => {
    write("package.json", standIn({ ...passing, prepack: "exit 3" }));
    commit();
    runCi();
    expect(tryRelease).toThrow("npm pack");
    expect(git("status", "--porcelain")).toBe("");
    expect(git("tag")).toBe("");
    expect(existsSync(join(root, "release", version))).toBe(false);
  });
});

describe("a release is refused", () => {
  const refusal = (wanted = version): string => {
    const before = git("rev-parse", "HEAD");
    try {
      tryRelease(wanted);
    } catch (error) {
      if (!(error instanceof ReleaseRefused)) throw error;
      expect(git("rev-parse", "HEAD")).toBe(before);
      expect(existsSync(join(root, "release"))).toBe(false);
      return error.message;
    }
    throw new Error("was released");
  };

  test("for a dirty tree", { tags: "full" }, () => {
    runCi();
    write("stray.txt", "");
    expect(refusal()).toBe("- the tree is dirty:\n?? stray.txt");
  });

  test("on another branch", { tags: "full" }, () => {
    runCi();
    git("checkout", "--quiet", "-b", "other");
    expect(refusal()).toBe("- the branch is other, not main");
  });

  test("for a commit without tests, or after the tested one", { tags: "full" }, () => {
    expect(refusal()).toContain("has not passed .ci/run in this clone; none has");
    const tested = git("rev-parse", "HEAD");
    runCi();
    commit();
    expect(refusal()).toContain(`has not passed .ci/run in this clone; the last that has is`);
    expect(refusal()).toContain(tested);
  });

  test("for tests that failed, or that ran over changes", { tags: "full" }, () => {
    write("stray.txt", "");
    runCi();
    rmSync(join(root, "stray.txt"));
    expect(refusal()).toContain("none has");
    write("package.json", standIn({ ...passing, test: "exit 1" }));
    commit();
    expect(runCi).toThrow();
    expect(refusal()).toContain("none has");
  });

  test("for tests during which the tree changed", { tags: "full" }, () => {
    write("package.json", standIn({ ...passing, test: "touch stray.txt" }));
    commit();
    runCi();
    rmSync(join(root, "stray.txt"));
    expect(refusal()).toContain("none has");
  });

  test(
    "for a version that does not follow the last tag and the changelog",
    { tags: "full" },
    () => {
      runCi();
      for (const tag of ["v9.0.0", "v10.0.0", "v10.0.1", "vnext"]) git("tag", tag);
      expect(refusal("10.0.0")).toBe("- 10.0.0 is not greater than 10.0.1, the last tag");
      expect(refusal("10.0.2")).toContain("[Unreleased] asks for 10.1.0");
      expect(refusal("latest")).toContain("is not MAJOR.MINOR.PATCH");
    },
  );

  test("without an entry in the changelog", { tags: "full" }, () => {
    write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n");
    commit();
    runCi();
    expect(refusal()).toBe("- [Unreleased] of CHANGELOG.md has no entry");
  });
});
