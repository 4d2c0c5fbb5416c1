/**
 * A release, from the checks to the tag. It publishes nothing.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { datedChangelog, unreleasedOf } from "./changelog.ts";
import { Unavailable, findEngine } from "../container/engine.mjs";
import { makeFiles } from "./files.ts";
import { makeImage } from "./image.ts";
import { npmPublishing } from "./provenance.ts";
import { versionRefusals } from "./rules.ts";
import { git, lastReleased, treeRefusals } from "./tree.ts";
import { carriedVersions, withVersion } from "./versions.ts";

const changelogPath = "CHANGELOG.md";

/** Whether the release has an image, and the base in place of the Dockerfile's. */
export type ImageChoice = false | { readonly base: string | undefined };

export interface ReleaseOptions {
  readonly root: string;
  readonly version: string;
  readonly isDryRun: boolean;
  readonly image: ImageChoice;
  /** As `2026-11-28`. */
  readonly date: string;
  readonly print: (text: string) => void;
}

/** The tree or the version must not be released. */
export class ReleaseRefused extends Error {
  override readonly name = "ReleaseRefused";

  constructor(refusals: readonly string[]) {
    super(refusals.map((refusal) => `- ${refusal}`).join("\n"));
  }
}

/**
 * Commits and tags the version, and leaves its files in `release/VERSION/`. Throws `ReleaseRefused`
 * before any change. A later failure restores the tree.
 */
export function release(options: ReleaseOptions): void {
  const { root, version, isDryRun, image, date, print } = options;
  const changelog = readFileSync(join(root, changelogPath), "utf8");
  const refusals = [
    ...treeRefusals(root),
    ...versionRefusals({
      version,
      current: packageVersion(root),
      last: lastReleased(root),
      unreleased: unreleasedOf(changelog),
    }),
  ];
  if (refusals.length > 0) throw new ReleaseRefused(refusals);

  const before = new Map(carriedVersions(root).map(({ path, text }) => [path, text]));
  before.set(changelogPath, changelog);
  const after = new Map(withVersion(root, version));
  after.set(changelogPath, datedChangelog(changelog, version, date));
  const directory = join("release", version);
  const tag = `v${version}`;
  print(`${changelogPath}: [Unreleased] becomes [${version}] - ${date}`);
  for (const { path, versions } of carriedVersions(root)) {
    print(`${path}: ${[...new Set(versions)].join(", ")} becomes ${version}`);
  }
  print(`${directory}: the tarball of npm pack, its SBOM (CycloneDX), SHA256SUMS`);
  if (image !== false)
    print(`${directory}: the image, its size and its SBOM, if an engine answers`);
  print(`git: the commit "Release ${version}", and the annotated tag ${tag}`);
  if (isDryRun) {
    print("Nothing is changed: a dry run.");
  } else {
    const makeImageFiles = () => imageFiles({ ...options, directory: join(root, directory) });
    commitRelease({ root, version, directory, before, after, makeImageFiles });
    git(root, "tag", "--annotate", tag, "--message", `Release ${version}`);
  }
  print(publishing(root, version, directory));
}

interface Change {
  readonly root: string;
  readonly version: string;
  readonly directory: string;
  readonly before: ReadonlyMap<string, string>;
  readonly after: ReadonlyMap<string, string>;
  readonly makeImageFiles: () => readonly string[];
}

function commitRelease(change: Change): void {
  const { root, version, directory, before, after, makeImageFiles } = change;
  try {
    writeAll(root, after);
    rmSync(join(root, directory), { recursive: true, force: true });
    makeFiles(root, join(root, directory), makeImageFiles);
    git(root, "commit", "--quiet", "--message", `Release ${version}`, "--only", ...after.keys());
  } catch (error) {
    writeAll(root, before);
    rmSync(join(root, directory), { recursive: true, force: true });
    throw error;
  }
}

function writeAll(root: string, files: ReadonlyMap<string, string>): void {
  for (const [path, text] of files) writeFileSync(join(root, path), text);
}

function packageVersion(root: string): string {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    version: string;
  };
  return version;
}

/** Files of the image; none where it is not wanted or no engine answers, which is printed. */
function imageFiles({
  root,
  version,
  image,
  directory,
  print,
}: ReleaseOptions & { readonly directory: string }): readonly string[] {
  if (image === false) return [];
  try {
    const made = makeImage(findEngine(), { root, directory, version, base: image.base });
    print(made.summary);
    return made.files;
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    print(`no image: ${error.message}`);
    return [];
  }
}

/** The commands that publish. They need accounts, so a person or a CI runs them. */
function publishing(root: string, version: string, directory: string): string {
  return `
Nothing is published. To publish, after a look at the commit (docs/releases.md, "Publish"):

  git push --atomic origin main v${version}
  (cd ${directory} && sha256sum --check SHA256SUMS)

${npmPublishing(root, directory)}

  # The image, with SBOM and provenance, by BuildKit; not run by this script:
  docker buildx build --sbom=true --provenance=mode=max --tag REGISTRY/str-worker:${version} --push .
`;
}
