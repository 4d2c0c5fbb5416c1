/**
 * Programs of Debian packages, unpacked once and not installed.
 */
import { delimiter, join } from "node:path";
import type { TestContext } from "vitest";
import { installedOnce, installedOrSkipped } from "../installed-once.ts";

const installMs = 120_000;

const unpack = `
set -e
cd "$1"
shift
apt-get download "$@"
for package in *.deb; do dpkg -x "$package" .; rm "$package"; done
ln -s usr/lib/*-linux-gnu* libraries`;

/** Where unpacked programs and libraries are. */
export interface UnpackedPackages {
  /** Of this process, for the programs, which come first on its path. */
  readonly variables: Readonly<Record<"PATH" | "LD_LIBRARY_PATH", string>>;
}

/** Skips the test on a machine that has not this Debian's packages, with the reason. */
export async function unpackedPackages(
  context: Pick<TestContext, "skip">,
  packages: readonly string[],
): Promise<UnpackedPackages> {
  const directory = await installedOrSkipped(
    context,
    installedOnce({
      ...{ title: packages.join(", "), key: [packages, unpack], timeoutMs: installMs },
      command: (fresh) => ["sh", "-c", unpack, "sh", fresh, ...packages],
    }),
  );
  const programs = ["usr/sbin", "usr/bin"].map((path) => join(directory, path));
  return {
    variables: {
      PATH: [...programs, process.env["PATH"] ?? ""].join(delimiter),
      LD_LIBRARY_PATH: join(directory, "libraries"),
    },
  };
}
