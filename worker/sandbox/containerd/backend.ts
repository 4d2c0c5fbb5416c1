/**
 * Sandboxes that are containers of containerd: with runc, on the host's kernel, or with Kata
 * Containers, each on a kernel of a virtual machine of its own.
 */
import { release } from "node:os";
import { type RuntimePlace, openOci } from "../oci/backend.ts";
import { type BackendOptions, type SandboxBackend, SandboxError } from "../sandbox.ts";
import { ContainerdClient } from "./client.ts";
import { makeNamespace, removeDead } from "./namespaces.ts";
import { ContainerdRuntime } from "./runtime.ts";
import type { ContainerdSettings, KataSettings } from "./settings.ts";

const runc = "io.containerd.runc.v2";
/** Tells the kernel that a command runs on. */
const askKernel = ["/usr/bin/uname", "-r"];

/**
 * Opens the backend with runc and runs a container. The caller owns it. Throws SandboxError;
 * rejects with the signal's reason.
 */
export async function openContainerd(
  options: BackendOptions & ContainerdSettings,
  signal: AbortSignal,
): Promise<SandboxBackend> {
  const open = (place: RuntimePlace): Promise<ContainerdRuntime> =>
    openRuntime({ ...options, runtime: runc }, "containerd", place, signal);
  return (await openOci(options, open, askKernel, signal)).backend;
}

/**
 * The same with Kata Containers. Refuses a runtime whose containers run on the host's kernel, with
 * SandboxError.
 */
export async function openKata(
  options: BackendOptions & KataSettings,
  signal: AbortSignal,
): Promise<SandboxBackend> {
  const open = (place: RuntimePlace): Promise<ContainerdRuntime> =>
    openRuntime(options, "kata", place, signal);
  const { backend, trial } = await openOci(options, open, askKernel, signal);
  const inside = trial.stdout.text.trim();
  if (inside !== "" && inside !== release()) return backend;
  await backend[Symbol.asyncDispose]();
  throw new SandboxError(
    `containers of ${options.runtime} run on the host's kernel, ${inside}: this is not Kata`,
    { setting: "kataRuntime" },
  );
}

async function openRuntime(
  options: BackendOptions & KataSettings,
  backend: "containerd" | "kata",
  { root, ownerTag }: RuntimePlace,
  signal: AbortSignal,
): Promise<ContainerdRuntime> {
  const { clock, runtime, onRemoveFailed } = options;
  const client = new ContainerdClient(options, `${ownerTag}-${backend}`);
  const version = await client.ask(["version"], signal);
  await removeDead(client, options, signal);
  await makeNamespace(client, root, signal);
  const number = /Server:\s+Version:\s*(\S+)/.exec(version)?.[1] ?? "";
  const technology = ["containerd", number, "with", runtime].filter(Boolean).join(" ");
  const sharesKernel = backend === "containerd";
  const given = { backend, client, runtime, technology, sharesKernel, clock };
  return new ContainerdRuntime({ ...given, onRemoveFailed: (error) => onRemoveFailed(error) });
}
