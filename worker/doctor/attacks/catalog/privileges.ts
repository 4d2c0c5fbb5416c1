/**
 * Attacks on privileges: capabilities, users, namespaces, mounts, devices, limits.
 */
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fixedLimitNames, fixedLimits, parseHardLimits } from "../../../sandbox/rlimits.ts";
import type { Attack } from "../attack.ts";
import { hasWholeProc, makesSandboxes } from "./at-import.ts";
import { needsProc, unlessFiltered } from "./no-baseline.ts";

/** For privileges outside of user namespaces; a baseline's capabilities are in one. */
const onlyOutside = (what: string) => () =>
  `the kernel lets nobody ${what} by a capability of a user namespace`;

const goesByOwnLimits = "a template goes by the worker's own limits, which bound all its sandboxes";

function hasTightLimits(): boolean {
  const hard = parseHardLimits(readFileSync("/proc/self/limits", "utf8"));
  return fixedLimitNames.every((name) => hard[name] <= fixedLimits[name].bound);
}

export const privilegesAttacks: readonly Attack[] = [
  {
    id: "capabilities",
    group: "privileges",
    title: "find a capability of its own or of the sandbox's first process",
    isFast: true,
  },
  {
    id: "become_root",
    group: "privileges",
    title: "become user 0, or give itself capabilities",
    isFast: false,
  },
  {
    id: "set_id_programs",
    group: "privileges",
    title: "gain something by programs such as su",
    isFast: false,
    noBaseline: () => "bubblewrap lets no program gain anything, also in the baseline",
  },
  {
    id: "remount_writable",
    group: "privileges",
    title: "make read-only mounts writable",
    isFast: false,
  },
  {
    id: "mount_file_system",
    group: "privileges",
    title: "mount something by mount(2)",
    isFast: true,
  },
  {
    id: "mount_by_descriptor",
    group: "privileges",
    title: "mount something by fsopen and open_tree",
    isFast: false,
    noBaseline: unlessFiltered,
  },
  {
    id: "change_root",
    group: "privileges",
    title: "leave through another root directory",
    isFast: false,
    noBaseline: unlessFiltered,
  },
  {
    id: "unshare_namespaces",
    group: "privileges",
    title: "make namespaces by unshare",
    isFast: true,
    notPromisedAtImport: makesSandboxes,
  },
  {
    id: "clone_namespaces",
    group: "privileges",
    title: "make namespaces by clone",
    isFast: false,
    notPromisedAtImport: makesSandboxes,
  },
  {
    id: "clone3_namespaces",
    group: "privileges",
    title: "make namespaces by clone3",
    isFast: false,
  },
  {
    id: "nested_bubblewrap",
    group: "privileges",
    title: "make a sandbox of its own",
    isFast: false,
    noBaseline: (unenforced) =>
      existsSync("/usr/bin/bwrap")
        ? needsProc(unenforced)
        : "there is no /usr/bin/bwrap to make one with",
  },
  {
    id: "join_namespaces",
    group: "privileges",
    title: "enter namespaces of the worker and of others",
    isFast: true,
    noBaseline: unlessFiltered,
  },
  {
    id: "share_namespaces",
    group: "privileges",
    title: "be in a namespace of the worker or of its template",
    isFast: false,
    noBaseline: needsProc,
  },
  {
    id: "devices",
    group: "privileges",
    title: "open disks and other devices",
    isFast: true,
  },
  {
    id: "make_device",
    group: "privileges",
    title: "make a device file for a disk or for memory",
    isFast: false,
    noBaseline: onlyOutside("make devices"),
  },
  {
    id: "kernel_settings",
    group: "privileges",
    title: "open core_pattern and other settings for writing",
    isFast: false,
    notPromisedAtImport: hasWholeProc,
    noBaseline: needsProc,
  },
  {
    id: "raise_limits",
    group: "privileges",
    title: "raise limits on what a process may use",
    isFast: true,
    notPromisedAtImport: goesByOwnLimits,
  },
  {
    id: "inherited_limits",
    group: "privileges",
    title: "have limits as high as the worker's",
    isFast: false,
    notPromisedAtImport: goesByOwnLimits,
    noBaseline: () =>
      hasTightLimits() ? "the worker's own limits are as tight as a sandbox's" : undefined,
  },
  {
    id: "cpu_placement",
    group: "privileges",
    title: "use more processors than it was given",
    isFast: false,
    notPromisedAtImport: "a template places its sandboxes on processors",
    noBaseline: () => (availableParallelism() === 1 ? "this host has one processor" : undefined),
  },
  {
    id: "priority",
    group: "privileges",
    title: "be served before other processes",
    isFast: false,
    notPromisedAtImport: hasWholeProc,
    noBaseline: onlyOutside("be served first"),
  },
  {
    id: "first_process_program",
    group: "privileges",
    title: "change the host's bubblewrap through the first process",
    isFast: true,
    noBaseline: () => "bubblewrap does not belong to the sandboxes' user, as it should",
  },
  {
    id: "signal_everything",
    group: "privileges",
    title: "send signals to every process there is",
    isFast: false,
  },
];
