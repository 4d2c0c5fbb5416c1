/**
 * An arm64 machine of QEMU's, which needs no other hardware: Debian's kernel and programs, and the
 * worker of this checkout.
 */
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { type TestContext, onTestFinished } from "vitest";
import { temporaryDirectory } from "../../integration/sandbox/sandbox-host.ts";
import { pypiPackages } from "../pypi-packages.ts";
import { slowPlace } from "../sandboxes/quick-place.ts";
import { debianPackages } from "./debian.ts";
import { nodePackage } from "./musl.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../../..");
const initrdScript = join(import.meta.dirname, "arm64-initrd.sh");
const memoryMebibytes = 3_072;
/** Several times what it takes: others need the processors, too. */
const machineTimeoutMs = 1_500_000;
const maxOutputBytes = 2 ** 24;

/** Of the machine; `musl` is beside glibc. */
const packages = [
  ...["bubblewrap", "busybox-static", "coreutils", "dash", "libstdc++6", "musl", "python3"],
  "util-linux",
];
/** What the worker is made of, beside its packages. */
const sources = [
  ...["package.json", "worker", "harness", "tool-runner"],
  ...["test/support/native", "test/support/workers/settled-code.ts", "test/fixtures"],
];

/** Programs of Node that the machine has, by the C library that they are linked with. */
export const machineNodes = { glibc: "/node-glibc", musl: "/node-musl" } as const;

/** Command lines by their names, without blanks; paths are those of the checkout. */
export type MachineRuns = Readonly<Record<string, readonly string[]>>;

/**
 * Starts the machine for these runs, one after the other. What each prints, by its name; rejects
 * with all that the machine says where one fails. Skips the test where it cannot be had.
 */
export async function runOnArm64(
  context: TestContext,
  runs: MachineRuns,
): Promise<ReadonlyMap<string, string>> {
  context.skip(process.arch !== "x64", "needs an x64 machine");
  const kernel = await debianPackages(context, {
    ...({ arch: "arm64", kind: "whole", packages: ["linux-image-cloud-arm64"] } as const),
  });
  const qemu = await debianPackages(context, {
    ...({ arch: "amd64", kind: "whole", packages: ["qemu-system-arm"] } as const),
  });
  const initrd = await makeInitrd(context, runs);
  const images = await readdir(join(kernel, "boot"));
  const image = images.find((name) => name.startsWith("vmlinuz-")) ?? "";
  const command = machineCommand(qemu, join(kernel, "boot", image), initrd);
  const [file = "", ...argv] = command;
  const limits = { timeout: machineTimeoutMs, maxBuffer: maxOutputBytes };
  const { stdout } = await run(file, argv, limits);
  const said = stdout.matchAll(/^said (\S+) (.*?)\r?$/gm);
  const answers = new Map([...said].map(([, name = "", line = ""]) => [name, line]));
  if (answers.size !== Object.keys(runs).length) throw new Error(`the machine failed:\n${stdout}`);
  return answers;
}

/** Its clock counts instructions: no time limit in it depends on what else this machine does. */
function machineCommand(qemu: string, kernel: string, initrd: string): readonly string[] {
  return [
    ...["nice", "-n", "15", join(qemu, "lib64/ld-linux-x86-64.so.2")],
    ...["--library-path", join(qemu, "usr/lib/x86_64-linux-gnu")],
    ...[join(qemu, "usr/bin/qemu-system-aarch64"), "-L", join(qemu, "usr/share/qemu")],
    ...["-M", "virt", "-cpu", "cortex-a72", "-accel", "tcg,thread=single"],
    ...["-icount", "shift=0,sleep=off", "-m", String(memoryMebibytes)],
    ...["-nographic", "-no-reboot", "-nic", "none", "-kernel", kernel, "-initrd", initrd],
    ...["-append", "console=ttyAMA0 panic=-1 quiet"],
  ];
}

/** The machine's files, until the end of the test. */
async function makeInitrd(context: TestContext, runs: MachineRuns): Promise<string> {
  const system = await debianPackages(context, { arch: "arm64", kind: "whole", packages });
  const tools = { arch: "amd64", kind: "alone", packages: ["busybox-static"] } as const;
  const busybox = join(await debianPackages(context, tools), "usr/bin/busybox");
  const wheel = (platform: string) => pypiPackages(context, [nodePackage], { platform });
  const glibc = await wheel("manylinux_2_28_aarch64");
  const musl = await wheel("musllinux_1_2_aarch64");
  const directory = await temporaryDirectory(onTestFinished, slowPlace);
  const trees = [directory, busybox, system, glibc, musl, root];
  const names = [...sources, ...(await productionPackages())];
  const making = run("/bin/sh", [initrdScript, ...trees, ...names]);
  const lines = Object.entries(runs).map(([name, command]) => [name, ...command].join(" "));
  making.child.stdin?.end(lines.map((line) => `${line}\n`).join(""));
  await making;
  return join(directory, "initrd");
}

/** Directories of the packages that a worker needs, below the checkout. */
async function productionPackages(): Promise<readonly string[]> {
  const argv = ["ls", "--omit", "dev", "--all", "--parseable"];
  const { stdout } = await run("npm", argv, { cwd: root });
  const [, ...directories] = stdout.trim().split("\n");
  const names = directories.map((directory) => relative(root, directory));
  // A package has what lies below it.
  return names.filter((name) => name.lastIndexOf("node_modules/") === 0);
}
