/**
 * Backends on a containerd of their own.
 */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, onTestFinished } from "vitest";
import { openContainerd } from "../../../worker/sandbox/containerd/backend.ts";
import type { ContainerdSettings } from "../../../worker/sandbox/containerd/settings.ts";
import type { SandboxBackend } from "../../../worker/sandbox/sandbox.ts";
import {
  backendOptions,
  never,
  temporaryDirectory,
} from "../../integration/sandbox/sandbox-host.ts";
import { openContainerd as startContainerd } from "./daemon.ts";
import type { WhenOver } from "../shared.ts";

/** A daemon that runs, and its client. Skips the test where it does not start, with the reason. */
export async function containerdHere(
  context: TestContext,
  whenOver: WhenOver = onTestFinished,
): Promise<ContainerdSettings> {
  const daemon = await startContainerd(context);
  whenOver(async () => daemon[Symbol.asyncDispose]());
  const { PATH = "", CONTAINERD_ADDRESS: address = "" } = daemon.variables;
  const programs = `${PATH}:/usr/bin`.split(delimiter).map((path) => join(path, "ctr"));
  return { ctrBin: programs.find((path) => existsSync(path)) ?? "ctr", address };
}

/** A backend on a daemon of its own. */
export async function openContainerdHere(
  context: TestContext,
  whenOver: WhenOver = onTestFinished,
): Promise<SandboxBackend> {
  const settings = await containerdHere(context, whenOver);
  const workBase = join(await temporaryDirectory(whenOver), "work");
  return openContainerd({ ...backendOptions(workBase), ...settings }, never);
}
