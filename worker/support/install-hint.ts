/**
 * The install command of a missing program.
 */
import { readFile, stat } from "node:fs/promises";

/** Packages by the name of their product; all systems use the same names. */
const products = {
  bubblewrap: { words: "bubblewrap 0.8 or newer", packageName: "bubblewrap" },
  python: { words: "Python 3.9 or newer", packageName: "python3" },
} as const;

export type Product = keyof typeof products;

/** By the system's `ID`, or one of its `ID_LIKE`: see os-release(5). */
const installers: Readonly<Record<string, string>> = {
  debian: "apt-get install -y",
  ubuntu: "apt-get install -y",
  fedora: "dnf install -y",
  rhel: "dnf install -y",
  alpine: "apk add",
};

const osReleaseFiles = ["/etc/os-release", "/usr/lib/os-release"];

/** Install command of a product, as a sentence without a full stop. */
export function installHint(product: Product, osRelease: string): string {
  const { words, packageName } = products[product];
  const installer = idsIn(osRelease)
    .map((id) => installers[id])
    .find((command) => command !== undefined);
  const what = `there is no such file; install ${words}`;
  return installer === undefined ? what : `${what}, as root: ${installer} ${packageName}`;
}

/** An error with the install command; undefined when `path` exists. Never rejects. */
export async function missingProgram(path: string, product: Product): Promise<Error | undefined> {
  const isMissing = await stat(path).then(
    () => false,
    (error: unknown) => (error as NodeJS.ErrnoException).code === "ENOENT",
  );
  return isMissing ? new Error(installHint(product, await readOsRelease())) : undefined;
}

function idsIn(osRelease: string): readonly string[] {
  const valueOf = (name: string): string =>
    new RegExp(`^${name}=(.*)$`, "m").exec(osRelease)?.[1]?.replace(/["']/g, "") ?? "";
  return `${valueOf("ID")} ${valueOf("ID_LIKE")}`.split(/\s+/).filter(Boolean);
}

async function readOsRelease(): Promise<string> {
  for (const path of osReleaseFiles) {
    const text = await readFile(path, "utf8").catch(() => undefined);
    if (text !== undefined) return text;
  }
  return "";
}
