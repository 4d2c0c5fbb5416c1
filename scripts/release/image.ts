/**
 * Builds the image of a release, and makes its files: an archive for every engine, its facts and
 * its SBOM.
 */
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Engine, run } from "../container/engine.mjs";
import { imageSbom } from "./image-sbom.ts";

const imageName = "str-worker";
const buildTimeoutMs = 20 * 60_000;
const saveTimeoutMs = 10 * 60_000;
const inspectTimeoutMs = 60_000;

/** What an image is built from. */
export interface ImageOptions {
  readonly root: string;
  readonly directory: string;
  readonly version: string;
  /** In place of the Dockerfile's `BASE`. */
  readonly base: string | undefined;
}

/** What a release says of its image. */
export interface ImageFacts {
  readonly name: string;
  readonly version: string;
  /** Digest of the image's configuration: engines show it as its id, and a push keeps it. */
  readonly id: string;
  /** As `linux/amd64`. */
  readonly platform: string;
  readonly base: string;
  readonly engine: string;
  /** Uncompressed, as the engine counts. */
  readonly sizeBytes: number;
  /** A file beside this one, with all layers. */
  readonly archive: string;
  readonly archiveBytes: number;
}

/** The files that were written, and a line for people. Leaves the image `str-worker:VERSION`. */
export interface MadeImage {
  readonly files: readonly string[];
  readonly summary: string;
}

/** Builds the tree below `root`. Throws if a command fails. */
export function makeImage(engine: Engine, options: ImageOptions): MadeImage {
  const { root, directory, version } = options;
  const base = options.base ?? defaultBase(root);
  const tag = `${imageName}:${version}`;
  const label = `org.opencontainers.image.version=${version}`;
  engine.mustRun(
    [
      ...["build", ...engine.buildFlags, "--build-arg", `BASE=${base}`, "--label", label],
      ...["--tag", tag, root],
    ],
    buildTimeoutMs,
  );
  const archive = `${imageName}-${version}.image.tar.gz`;
  const archiveBytes = save(engine, tag, join(directory, archive));
  const facts = { ...inspect(engine, tag), version, base, archive, archiveBytes };
  const [factsFile, sbomFile] = ["json", "cdx.json"].map(
    (end) => `${imageName}-${version}.image.${end}`,
  ) as [string, string];
  writeJson(join(directory, factsFile), facts satisfies ImageFacts);
  writeJson(join(directory, sbomFile), imageSbom(engine, tag, facts));
  return { files: [archive, factsFile, sbomFile], summary: summaryOf(facts) };
}

function inspect(engine: Engine, tag: string) {
  const format = "{{.Id}} {{.Os}}/{{.Architecture}} {{.Size}}";
  const printed = engine.mustRun(["image", "inspect", "--format", format, tag], inspectTimeoutMs);
  const [id = "", platform = "", size] = printed.trim().split(" ");
  return {
    name: imageName,
    // podman leaves the algorithm out.
    id: id.startsWith("sha256:") ? id : `sha256:${id}`,
    platform,
    engine: engine.mustRun(["--version"], inspectTimeoutMs).trim(),
    sizeBytes: Number(size),
  };
}

/** Writes an archive that docker, podman and ctr take, and returns its size. */
function save(engine: Engine, tag: string, path: string): number {
  const plain = path.replace(/\.gz$/, "");
  rmSync(path, { force: true });
  engine.mustRun(["save", "--output", plain, tag], saveTimeoutMs);
  const { status, output } = run("gzip", ["--no-name", plain], saveTimeoutMs);
  if (status !== 0) throw new Error(`gzip failed: ${output}`);
  return statSync(path).size;
}

function defaultBase(root: string): string {
  const base = /^ARG BASE=(\S+)$/m.exec(readFileSync(join(root, "Dockerfile"), "utf8"))?.[1];
  if (base === undefined) throw new Error("the Dockerfile has no ARG BASE=");
  return base;
}

function summaryOf({ id, sizeBytes, archiveBytes, platform, engine }: ImageFacts): string {
  const [size, compressed] = [sizeBytes, archiveBytes].map((bytes) => Math.round(bytes / 1e6));
  return `image ${id} for ${platform} by ${engine}: ${size} MB, ${compressed} MB compressed`;
}

function writeJson(path: string, value: object): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}
