/**
 * The containerd backend with runc, held to the contract of every sandbox backend, and what the
 * Kata backend says of a runtime that is none.
 */
import { execFile } from "node:child_process";
import { release } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { openContainerd, openKata } from "../../worker/sandbox/containerd/backend.ts";
import { ContainerdClient } from "../../worker/sandbox/containerd/client.ts";
import { makeNamespace } from "../../worker/sandbox/containerd/namespaces.ts";
import { restrictiveProfile } from "../../worker/sandbox/profile.ts";
import { makeBundle, rootOf } from "../../worker/sandbox/oci/bundle.ts";
import { ociSpec } from "../../worker/sandbox/oci/spec.ts";
import { newId } from "../../worker/support/ids.ts";
import { systemDirectories } from "../../worker/sandbox/proc/host.ts";
import {
  backendOptions,
  never,
  processesWith,
  temporaryDirectory,
  uniqueSleep,
} from "../integration/sandbox/sandbox-host.ts";
import { containerdHere, openContainerdHere } from "../support/containers/containerd-backend.ts";
import { patience } from "../support/patience.ts";
import { shared } from "../support/shared.ts";
import { describeSandboxBackend } from "./sandbox-backend.ts";
import { run } from "./sandbox-backend/running.ts";

const execute = promisify(execFile);

describe("with Debian's containerd", { tags: "full" }, () => {
  describeSandboxBackend("containerd", openContainerdHere, { isolates: true, hasStdin: true });

  describe("a sandbox of containerd", () => {
    const open = shared(openContainerdHere);

    test("has its memory bounded by the kernel", async (context) => {
      const backend = await open(context);
      const script = "exec python3 -c 'x = b\"1\" * 2**30'";
      const { exitCode, signal } = await run(backend, script, { memoryBound: "resident" });
      expect({ exitCode, signal }).toEqual({ exitCode: undefined, signal: "SIGKILL" });
    });

    test("has no more processes than its limit", async (context) => {
      const backend = await open(context);
      const limits = { ...restrictiveProfile.limits, processes: 16 };
      const script = "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); echo $i; done";
      const { stdout, stderr } = await run(backend, script, {
        profile: { ...restrictiveProfile, limits },
      });
      expect(stderr.text).toContain("Cannot fork");
      expect(stdout.text.trim().split("\n").at(-1)).toBe("15");
    });

    test("has no capability, no new privileges and a filter", async (context) => {
      const backend = await open(context);
      const { stdout } = await run(backend, "grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status");
      const values = stdout.text
        .trim()
        .split("\n")
        .map((line) => line.split(/:\s+/)[1]);
      expect(values).toEqual([...Array<string>(5).fill("0".repeat(16)), "1", "2"]);
      const refused = await run(backend, "unshare --user true");
      expect(refused.stderr.text).toContain("Operation not permitted");
    });
  });

  test("a worker removes the containers of a dead one", async (context) => {
    const settings = await containerdHere(context);
    const workBase = join(await temporaryDirectory(), "work");
    const dead = `str-dead-${newId()}`;
    const client = new ContainerdClient(settings, dead);
    await makeNamespace(client, join(workBase, "worker-000000000000000000000000"), never);
    const { marker, command } = uniqueSleep();
    await startLeftOver(client, command.split(" "));
    const isRunning = async () => expect(await processesWith(marker)).not.toEqual([]);
    await vi.waitFor(isRunning, patience);
    const foreign = new ContainerdClient(settings, "str-foreign");
    await makeNamespace(foreign, join(workBase, "other", "worker-0"), never);
    const backend = await openContainerd({ ...backendOptions(workBase), ...settings }, never);
    onTestFinished(() => backend[Symbol.asyncDispose]());
    const [file = "", ...argv] = client.command("namespaces", "list", "--quiet");
    const { stdout } = await execute(file, argv);
    expect(stdout).toContain("str-foreign");
    expect(stdout).not.toContain(dead);
    expect(await processesWith(marker)).toEqual([]);
  });

  test("Kata is refused where its containers run on the host's kernel", async (context) => {
    const settings = { ...(await containerdHere(context)), runtime: "io.containerd.runc.v2" };
    const workBase = join(await temporaryDirectory(), "work");
    const opening = openKata({ ...backendOptions(workBase), ...settings }, never);
    await expect(opening).rejects.toThrow(
      `containers of io.containerd.runc.v2 run on the host's kernel, ${release()}`,
    );
  });

  test("Kata's sandboxes hold the contract of backends", (context) => {
    context.skip(true, "needs Kata Containers and hardware virtualization: Debian has no package");
  });
});

/** A container that nobody waits for. */
async function startLeftOver(client: ContainerdClient, words: readonly string[]): Promise<void> {
  const place = await temporaryDirectory();
  const spec = ociSpec({
    profile: restrictiveProfile,
    root: rootOf(join(place, "left")),
    argv: ["/usr/bin/env", ...words],
    userId: 65_534,
    ...{ rlimits: [], systemPaths: [], mounts: [], writable: [] },
    ...{ workDir: place, resources: undefined, seccomp: undefined },
  });
  const { path } = await makeBundle(place, "left", spec, await systemDirectories());
  const started = ["run", "--detach", "--null-io", "--config", join(path, "config.json"), "left"];
  await client.ask(started);
}
