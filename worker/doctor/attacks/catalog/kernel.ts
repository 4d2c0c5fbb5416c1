/**
 * Attacks on the kernel: system calls and interfaces that no tool needs.
 */
import { readFileSync } from "node:fs";
import type { Attack } from "../attack.ts";
import { makesSandboxes } from "./at-import.ts";
import { anyOf, unlessFiltered } from "./no-baseline.ts";

/** The reason when a setting of this kernel closes an interface to all users. */
function unlessSet(setting: string, isClosed: (value: number) => boolean) {
  return (): string | undefined => {
    const value = readSetting(setting);
    if (value === undefined) return `this kernel has no ${setting}`;
    return isClosed(value) ? `${setting} is ${value} on this host` : undefined;
  };
}

function readSetting(setting: string): number | undefined {
  try {
    return Number(readFileSync(`/proc/sys/${setting.replaceAll(".", "/")}`, "utf8"));
  } catch {
    return undefined;
  }
}

const onlyX64 = (what: string) => () =>
  process.arch === "x64" ? undefined : `${process.arch} has no ${what}`;

export const kernelAttacks: readonly Attack[] = [
  {
    id: "system_calls",
    group: "kernel",
    title: "make each call that a filter should refuse",
    isFast: true,
    notPromisedAtImport: makesSandboxes,
  },
  {
    id: "other_call_tables",
    group: "kernel",
    title: "call by the tables for x32 and 32-bit programs",
    isFast: true,
    noBaseline: anyOf(onlyX64("second table"), unlessFiltered),
  },
  {
    id: "trace_sibling",
    group: "kernel",
    title: "trace another process and take what it has open",
    isFast: false,
    noBaseline: unlessFiltered,
  },
  {
    id: "io_uring",
    group: "kernel",
    title: "make a ring of io_uring",
    isFast: false,
    noBaseline: anyOf(
      unlessSet("kernel.io_uring_disabled", (value) => value > 0),
      unlessFiltered,
    ),
  },
  {
    id: "page_faults",
    group: "kernel",
    title: "handle page faults by userfaultfd",
    isFast: false,
    noBaseline: anyOf(
      unlessSet("vm.unprivileged_userfaultfd", () => false),
      unlessFiltered,
    ),
  },
  {
    id: "bpf_programs",
    group: "kernel",
    title: "talk to bpf",
    isFast: false,
    noBaseline: unlessFiltered,
  },
  {
    id: "performance_events",
    group: "kernel",
    title: "open a counter of perf",
    isFast: false,
    noBaseline: anyOf(
      unlessSet("kernel.perf_event_paranoid", (value) => value > 2),
      unlessFiltered,
    ),
  },
  {
    id: "watch_file_systems",
    group: "kernel",
    title: "watch files by fanotify",
    isFast: false,
    noBaseline: unlessFiltered,
  },
  {
    id: "inotify_instances",
    group: "kernel",
    title: "take what all sandboxes have few of together",
    isFast: false,
  },
  {
    id: "watch_shared_files",
    group: "kernel",
    title: "see when others use shared files, and hold them up",
    isFast: false,
  },
  {
    id: "pinned_pages",
    group: "kernel",
    title: "keep memory in pipes that counts on no account",
    isFast: false,
  },
  {
    id: "huge_pages",
    group: "kernel",
    title: "take huge pages of the host",
    isFast: false,
    noBaseline: unlessSet("vm.nr_hugepages", () => false),
  },
  {
    id: "separate_descriptors",
    group: "kernel",
    title: "open files that only one thread of a process has",
    isFast: false,
  },
  {
    id: "pseudo_terminals",
    group: "kernel",
    title: "take pseudo terminals, of which the host has few",
    isFast: false,
    notPromised: ({ name, terminals }) =>
      terminals ? `the profile ${name} has pseudo terminals` : undefined,
  },
  {
    id: "file_handles",
    group: "kernel",
    title: "open files by handle, past the mounts",
    isFast: false,
    noBaseline: unlessFiltered,
  },
  {
    id: "local_descriptor_table",
    group: "kernel",
    title: "write the local descriptor table",
    isFast: false,
    noBaseline: anyOf(onlyX64("such table"), unlessFiltered),
  },
  {
    id: "fixed_addresses",
    group: "kernel",
    title: "switch random addresses off",
    isFast: false,
    noBaseline: unlessFiltered,
  },
  {
    id: "program_in_memory",
    group: "kernel",
    title: "run a program that is in no file system",
    isFast: false,
  },
  {
    id: "kernel_secrets",
    group: "kernel",
    title: "read the kernel's log, addresses and memory",
    isFast: false,
    noBaseline: unlessSet("kernel.dmesg_restrict", (value) => value > 0),
  },
  {
    id: "terminal_input",
    group: "kernel",
    title: "type into a terminal",
    isFast: true,
    noBaseline: unlessSet("dev.tty.legacy_tiocsti", (value) => value === 0),
  },
  {
    id: "line_disciplines",
    group: "kernel",
    title: "give a terminal another line discipline",
    isFast: false,
  },
  {
    id: "socket_families",
    group: "kernel",
    title: "open sockets of rare families",
    isFast: false,
  },
  {
    id: "netlink_protocols",
    group: "kernel",
    title: "talk to the kernel's subsystems by netlink",
    isFast: false,
  },
];
