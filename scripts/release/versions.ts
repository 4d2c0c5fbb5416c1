/**
 * Every place that repeats the version: one list, which a release rewrites and a test compares.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Carrier {
  readonly path: string;
  /** Matches each version in the file, and nothing around it. */
  readonly version: RegExp;
}

export const carriers: readonly Carrier[] = [
  { path: "package.json", version: /(?<=^ {2}"version": ")[^"]+/gm },
  {
    path: "package-lock.json",
    version:
      /(?<=^ {2}"version": "|^ {4}"": \{\n(?: {6}"name": "[^"]*",\n)? {6}"version": ")[^"]+/gm,
  },
  { path: "tool-runner/python/pyproject.toml", version: /(?<=^version = ")[^"]+/gm },
  { path: "deploy/helm/str-worker/Chart.yaml", version: /(?<=^(?:version|appVersion): ).+/gm },
  { path: "README.md", version: /(?<=secure-tool-runtime-)\d[\d.]*\d(?=\.tgz)/g },
  { path: "docs/harness.md", version: /(?<=secure_tool_runtime-)\d[\d.]*\d(?=-py3)/g },
  { path: "docs/write-a-python-tool.md", version: /(?<=secure_tool_runtime-)\d[\d.]*\d(?=-py3)/g },
  { path: "docs/systemd.md", version: /(?<=secure-tool-runtime[-@])\d[\d.]*\d/g },
  { path: "docs/kubernetes.md", version: /(?<=newTag: )\d[\d.]*\d/g },
];

export interface CarriedVersions {
  readonly path: string;
  readonly text: string;
  readonly versions: readonly string[];
}

/** The listed files below `root` with the versions in them. */
export function carriedVersions(root: string): readonly CarriedVersions[] {
  return carriers.map(({ path, version }) => {
    const text = readFileSync(join(root, path), "utf8");
    return { path, text, versions: text.match(version) ?? [] };
  });
}

/** The listed files below `root`, by path, with another version. */
export function withVersion(root: string, next: string): ReadonlyMap<string, string> {
  return new Map(
    carriers.map(({ path, version }) => {
      const text = readFileSync(join(root, path), "utf8");
      return [path, text.replace(version, next)];
    }),
  );
}
