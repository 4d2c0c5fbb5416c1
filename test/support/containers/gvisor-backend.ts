/**
 * gVisor backends with the machine's runsc, or Debian's, which is unpacked once.
 */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, onTestFinished } from "vitest";
import { type GvisorOptions, openGvisor } from "../../../worker/sandbox/gvisor/backend.ts";
import type { SandboxBackend } from "../../../worker/sandbox/sandbox.ts";
import {
  backendOptions,
  never,
  temporaryDirectory,
} from "../../integration/sandbox/sandbox-host.ts";
import { unpackedPackages } from "./debian-packages.ts";
import { isRoot } from "../is-root.ts";
import type { WhenOver } from "../shared.ts";

const usual = "/usr/bin/runsc";

/** The program. Skips the test where there is none and this machine cannot get it. */
export async function runscProgram(context: TestContext): Promise<string> {
  context.skip(!isRoot, "needs root: gVisor makes its file system with chroot");
  if (existsSync(usual)) return usual;
  const { variables } = await unpackedPackages(context, ["runsc"]);
  const directories = variables.PATH.split(delimiter).map((path) => join(path, "runsc"));
  return directories.find((path) => existsSync(path)) ?? usual;
}

/** A backend in a directory of its own, removed after the test unless said otherwise. */
export async function openGvisorHere(
  context: TestContext,
  changes: Partial<GvisorOptions> = {},
  whenOver: WhenOver = onTestFinished,
): Promise<SandboxBackend> {
  const runscBin = await runscProgram(context);
  const workBase = join(await temporaryDirectory(whenOver), "work");
  return openGvisor({ ...backendOptions(workBase), runscBin, ...changes }, never);
}
