/**
 * Asks bubblewrap for one sandbox, so that a machine that allows none says so before anything else
 * is tried.
 *
 * Only the least is asked here, with no fresh /proc: what exactly the machine allows is for the
 * worker's own probe.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { SetupError } from "./report.mjs";

/** The first version with --disable-userns. */
const oldestVersion = [0, 8];
const timeoutMs = 20_000;

const smallestSandbox = [
  ["--unshare-all", "--unshare-user", "--die-with-parent", "--cap-drop", "ALL"],
  ["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"],
  ["--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"],
  ["/usr/bin/true"],
].flat();

/** Kernel settings that forbid user namespaces, and what lifts each. */
const kernelSettings = [
  {
    file: "/proc/sys/user/max_user_namespaces",
    forbids: "0",
    lift: "user.max_user_namespaces=15000",
  },
  {
    file: "/proc/sys/kernel/unprivileged_userns_clone",
    forbids: "0",
    lift: "kernel.unprivileged_userns_clone=1",
  },
  {
    file: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    forbids: "1",
    lift: "kernel.apparmor_restrict_unprivileged_userns=0",
  },
];

/** Throws SetupError when `bwrap` is too old or cannot make a sandbox here. */
export function checkSandbox(bwrap) {
  const version = run(bwrap, ["--version"]).output;
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number);
  if (major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1])) {
    throw new SetupError(
      `bubblewrap ${oldestVersion.join(".")} or newer is needed; ${bwrap} says "${version}". ` +
        "Debian 12 has it.",
    );
  }
  const sandbox = run(bwrap, smallestSandbox);
  if (!sandbox.ok) throw new SetupError(whyNot(sandbox.output));
}

function whyNot(output) {
  const lifts = kernelSettings
    .filter(({ file, forbids }) => readSetting(file) === forbids)
    .map(({ lift }) => `  as root: sysctl -w ${lift}`);
  const advice =
    lifts.length > 0
      ? ["The kernel forbids user namespaces. Allow them:", ...lifts]
      : [
          "A container needs a seccomp and AppArmor profile that allows user namespaces (unshare, clone, mount); a chroot",
          "allows none. A process that is not root must hold no capabilities.",
        ];
  return [`bubblewrap cannot make a sandbox here: ${output}`, ...advice].join("\n");
}

function readSetting(file) {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return undefined; // this kernel has no such setting
  }
}

function run(command, args) {
  const result = spawnSync(command, args, {
    env: {},
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
    timeout: timeoutMs,
  });
  const output = result.error?.message ?? `${result.stdout}${result.stderr}`.trim();
  return { ok: result.status === 0, output };
}
