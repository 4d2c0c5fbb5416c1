/** Keeps the version one: all files that repeat it agree, and no other file repeats it. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { carriedVersions, carriers, withVersion } from "../../../scripts/release/versions.ts";

const root = join(import.meta.dirname, "../../..");
const { name, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  name: string;
  version: string;
};

test.each(carriedVersions(root))("$path has the version of package.json", ({ versions }) => {
  expect(versions).not.toEqual([]);
  expect(new Set(versions)).toEqual(new Set([version]));
});

test("package-lock.json and the chart have it twice, and their other versions stay", () => {
  const versionsOf = (path: string): readonly string[] =>
    carriedVersions(root).find((carried) => carried.path === path)!.versions;
  expect(versionsOf("package-lock.json")).toHaveLength(2);
  expect(versionsOf("deploy/helm/str-worker/Chart.yaml")).toHaveLength(2);
  const lock = readFileSync(join(root, "package-lock.json"), "utf8").split("\n");
  const changed = withVersion(root, "7.8.9").get("package-lock.json")!.split("\n");
  expect(changed.filter((line, index) => line !== lock[index])).toEqual([
    `  "version": "7.8.9",`,
    `      "version": "7.8.9",`,
  ]);
});

test("no other page or file of deploy/ names a file or tag of this version", () => {
  const names = [name, name.replaceAll("-", "_")].flatMap((spelled) => [
    `${spelled}-${version}`,
    `${spelled}@${version}`,
  ]);
  const patterns = [...names, `newTag: ${version}`, `str-worker:${version}`];
  const args = patterns.flatMap((pattern) => ["-e", pattern]);
  const pages = ["README.md", "docs", "deploy", "examples"];
  const found = execFileSync("grep", ["-rlF", ...args, ...pages], { cwd: root, encoding: "utf8" });
  const listed = carriers.map(({ path }) => path);
  expect(
    found
      .trim()
      .split("\n")
      .filter((path) => !listed.includes(path)),
  ).toEqual([]);
});
