/**
 * Programs of Debian's packages for tests, unpacked beside the system.
 */
import { join } from "node:path";
import type { TestContext } from "vitest";
import { installedOnce, installedOrSkipped } from "../installed-once.ts";

const downloadTimeoutMs = 300_000;

/** Path of a program in a package; the test is skipped where apt cannot download that. */
export async function debianProgram(
  context: Pick<TestContext, "skip">,
  name: string,
  program: string,
): Promise<string> {
  const unpack = 'cd "$1" && apt-get -q download "$2" && dpkg -x ./*.deb . && rm ./*.deb';
  const installation = {
    title: `Debian's package ${name}`,
    key: ["debian", process.arch, name],
    timeoutMs: downloadTimeoutMs,
    command: (directory: string) => ["/bin/sh", "-c", unpack, "sh", directory, name],
  };
  return join(await installedOrSkipped(context, installedOnce(installation)), program);
}
