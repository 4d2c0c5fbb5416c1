/**
 * Containers by runc or crun, as Docker, Podman and Kubernetes start theirs, without an engine: by
 * the machine's own, or that of Debian, which is unpacked once and not installed.
 */
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { isRoot } from "../is-root.ts";
import { slowPlace } from "../sandboxes/quick-place.ts";
import { unpackedPackages } from "./debian-packages.ts";
import { type ContainerOptions, writeBundle } from "./oci-bundle.ts";

const run = promisify(execFile);
/** For the attacks by three starts on a busy machine. */
const containerMs = 20 * 60_000;
const maxOutputBytes = 2 ** 26;

/** What is unpacked beside programs: libraries that machines without containers may not have. */
const debianPackages = {
  runc: ["runc", "libseccomp2"],
  crun: ["crun", "libseccomp2", "libyajl2"],
} as const;
export type RuntimeName = keyof typeof debianPackages;

/** crun starts nothing where both versions of control groups are mounted. */
const withoutUnifiedGroups = [
  ...["unshare", "--mount", "--propagation", "private", "sh", "-c"],
  ...['! mountpoint --quiet "$0" || umount "$0"; exec "$@"', "/sys/fs/cgroup/unified"],
];

/** What came of a container. */
export interface ContainerEnd {
  /** Exit code of its command. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A runtime that starts containers on this machine. */
export class OciRuntime {
  readonly #command: readonly string[];
  readonly #environment: Readonly<Record<string, string>>;

  private constructor(command: readonly string[], variables: Readonly<Record<string, string>>) {
    this.#command = command;
    this.#environment = { PATH: process.env["PATH"] ?? "", ...variables };
  }

  /** Skips the test on a machine that has no containers, with the reason. */
  static async open(context: TestContext, name: RuntimeName = "runc"): Promise<OciRuntime> {
    context.skip(!isRoot, "needs root, to start containers");
    const { variables } = (await isThere(name))
      ? { variables: {} }
      : await unpackedPackages(context, debianPackages[name]);
    const prefix = name === "crun" ? withoutUnifiedGroups : [];
    const runtime = new OciRuntime([...prefix, name], variables);
    const { status, stderr } = await runtime.run({ uid: 0 }, ["true"]);
    context.skip(status !== 0, `${name} starts no container here: ${stderr.trim()}`);
    return runtime;
  }

  /** Runs a command in a container of its own, to the end of all of its processes. */
  async run(options: ContainerOptions, argv: readonly string[]): Promise<ContainerEnd> {
    const directory = await mkdtemp(join(slowPlace, "str-container-"));
    const id = basename(directory);
    const command = (...args: string[]) => this.#run(["--root", join(directory, "state"), ...args]);
    try {
      await chmod(directory, 0o755);
      await writeBundle(directory, options, argv);
      const { stdout, stderr } = await command("run", "--bundle", directory, id);
      return { status: 0, stdout, stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code?: unknown; stdout: string; stderr: string };
      if (typeof code !== "number") throw error;
      return { status: code, stdout, stderr };
    } finally {
      // Where its time was over it still runs.
      await command("delete", "--force", id);
      await rm(directory, { recursive: true, force: true });
    }
  }

  #run(args: readonly string[]) {
    const options = { timeout: containerMs, maxBuffer: maxOutputBytes, env: this.#environment };
    const [program = "", ...argv] = [...this.#command, ...args];
    return run(program, argv, options);
  }
}

async function isThere(name: RuntimeName): Promise<boolean> {
  return await run(name, ["--version"]).then(
    () => true,
    () => false,
  );
}
