/**
 * Containers by runc, as Docker, Podman and Kubernetes start theirs, without an engine: the
 * machine's own runc, or that of Debian, which is unpacked once and not installed.
 */
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { installedOnce, installedOrSkipped } from "../installed-once.ts";
import { isRoot } from "../is-root.ts";
import { slowPlace } from "../sandboxes/quick-place.ts";
import { type ContainerOptions, writeBundle } from "./oci-bundle.ts";

const run = promisify(execFile);
const installMs = 120_000;
/** For the attacks by three starts on a busy machine. */
const containerMs = 20 * 60_000;
const maxOutputBytes = 2 ** 26;

const packages = ["runc", "libseccomp2"];
const unpack = `
set -e
cd "$1"
apt-get download ${packages.join(" ")}
for package in *.deb; do dpkg -x "$package" .; rm "$package"; done
ln -s usr/lib/*-linux-gnu* libraries`;

/** What came of a container. */
export interface ContainerEnd {
  /** Exit code of its command. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A runc that starts containers on this machine. */
export class OciRuntime {
  readonly #program: string;
  readonly #environment: Readonly<Record<string, string>>;

  private constructor(program: string, environment: Readonly<Record<string, string>>) {
    this.#program = program;
    this.#environment = { PATH: process.env["PATH"] ?? "", ...environment };
  }

  /** Skips the test on a machine that has no containers, with the reason. */
  static async open(context: TestContext): Promise<OciRuntime> {
    context.skip(!isRoot, "needs root, to start containers");
    const found = new OciRuntime("runc", {});
    const runtime = (await found.#isThere()) ? found : await OciRuntime.#unpacked(context);
    const { status, stderr } = await runtime.run({ uid: 0 }, ["true"]);
    context.skip(status !== 0, `runc starts no container here: ${stderr.trim()}`);
    return runtime;
  }

  static async #unpacked(context: TestContext): Promise<OciRuntime> {
    const directory = await installedOrSkipped(
      context,
      installedOnce({
        ...{ title: packages.join(", "), key: [packages, unpack], timeoutMs: installMs },
        command: (fresh) => ["sh", "-c", unpack, "sh", fresh],
      }),
    );
    return new OciRuntime(join(directory, "usr", "sbin", "runc"), {
      LD_LIBRARY_PATH: join(directory, "libraries"),
    });
  }

  async #isThere(): Promise<boolean> {
    return await this.#runc(["--version"]).then(
      () => true,
      () => false,
    );
  }

  /** Runs a command in a container of its own, to the end of all of its processes. */
  async run(options: ContainerOptions, argv: readonly string[]): Promise<ContainerEnd> {
    const directory = await mkdtemp(join(slowPlace, "str-container-"));
    const id = basename(directory);
    const runc = (...args: string[]) => this.#runc(["--root", join(directory, "state"), ...args]);
    try {
      await chmod(directory, 0o755);
      await writeBundle(directory, options, argv);
      const { stdout, stderr } = await runc("run", "--bundle", directory, id);
      return { status: 0, stdout, stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code?: unknown; stdout: string; stderr: string };
      if (typeof code !== "number") throw error;
      return { status: code, stdout, stderr };
    } finally {
      // Where its time was over it still runs.
      await runc("delete", "--force", id);
      await rm(directory, { recursive: true, force: true });
    }
  }

  #runc(args: readonly string[]) {
    const options = { timeout: containerMs, maxBuffer: maxOutputBytes, env: this.#environment };
    return run(this.#program, args, options);
  }
}
