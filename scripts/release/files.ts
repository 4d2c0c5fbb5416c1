/**
 * Makes the files of a release: the tarball with its SBOM, the image with its own, and checksums.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const maxOutputBytes = 64 * 1024 * 1024;
/** Lists what users install, by the lock file: without packages for development. */
const sbomCommand = ["sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"];

export const checksumsFile = "SHA256SUMS";

/**
 * Writes the files into `directory`; `npm pack` builds first. `makeOthers` writes further ones
 * there and returns their names. Throws if a command fails.
 */
export function makeFiles(
  root: string,
  directory: string,
  makeOthers: () => readonly string[],
): readonly string[] {
  mkdirSync(directory, { recursive: true });
  npm(root, "pack", "--loglevel", "warn", "--pack-destination", directory);
  const tarball = readdirSync(directory).find((file) => file.endsWith(".tgz"));
  if (tarball === undefined) throw new Error(`npm pack left no tarball in ${directory}`);
  const sbom = tarball.replace(/\.tgz$/, ".cdx.json");
  writeFileSync(join(directory, sbom), sbomOf(root));
  const files = [tarball, sbom, ...makeOthers()];
  const sums = files.map((file) => `${sha256(join(directory, file))}  ${file}\n`);
  writeFileSync(join(directory, checksumsFile), sums.join(""));
  return [...files, checksumsFile];
}

/** The SBOM of npm with the package's name: npm puts the name of the checkout's folder there. */
function sbomOf(root: string): string {
  const { name } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { name: string };
  const sbom = JSON.parse(npm(root, ...sbomCommand)) as { metadata: { component: object } };
  Object.assign(sbom.metadata.component, { name });
  return `${JSON.stringify(sbom, null, 2)}\n`;
}

function npm(root: string, ...args: readonly string[]): string {
  const stdio = ["ignore", "pipe", "inherit"] as const;
  return execFileSync("npm", args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: maxOutputBytes,
    stdio: [...stdio],
  });
}

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}
