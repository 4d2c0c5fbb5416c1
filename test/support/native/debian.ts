/**
 * Debian's packages of one release, which may be another than this machine's, for any processor:
 * unpacked beside the system, once on a machine.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "vitest";
import { installedOnce, installedOrSkipped } from "../installed-once.ts";

const script = join(import.meta.dirname, "debian.sh");
const timeoutMs = 300_000;

/** The packages to unpack. */
export interface DebianPackages {
  readonly arch: "amd64" | "arm64";
  /** `whole` is with all that they depend on; `source` has their sources, by their names. */
  readonly kind: "alone" | "whole" | "source";
  readonly packages: readonly string[];
}

/** A directory with them; the test is skipped where apt cannot download them. */
export async function debianPackages(
  context: Pick<TestContext, "skip">,
  { arch, kind, packages }: DebianPackages,
): Promise<string> {
  const installation = {
    title: `Debian's ${packages.join(", ")} for ${arch}`,
    key: [await readFile(script, "utf8"), arch, kind, packages],
    timeoutMs,
    command: (directory: string) => ["/bin/sh", script, directory, arch, kind, ...packages],
  };
  return installedOrSkipped(context, installedOnce(installation));
}
