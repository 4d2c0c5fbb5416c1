/**
 * Attacks on the kernel: calls and interfaces that no tool needs.
 */
import { readFileSync } from "node:fs";
import type { Attack } from "../attack.ts";

/** Says so when a setting of this kernel keeps something from everybody. */
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
  },
  {
    id: "other_call_tables",
    group: "kernel",
    title: "call by the tables for x32 and 32-bit programs",
    isFast: true,
    noControl: onlyX64("second table"),
  },
  {
    id: "trace_sibling",
    group: "kernel",
    title: "trace another process and take what it has open",
    isFast: false,
  },
  {
    id: "io_uring",
    group: "kernel",
    title: "make a ring of io_uring",
    isFast: false,
    noControl: unlessSet("kernel.io_uring_disabled", (value) => value > 0),
  },
  {
    id: "page_faults",
    group: "kernel",
    title: "handle page faults by userfaultfd",
    isFast: false,
    noControl: unlessSet("vm.unprivileged_userfaultfd", () => false),
  },
  {
    id: "bpf_programs",
    group: "kernel",
    title: "talk to bpf",
    isFast: false,
  },
  {
    id: "performance_events",
    group: "kernel",
    title: "open a counter of perf",
    isFast: false,
    noControl: unlessSet("kernel.perf_event_paranoid", (value) => value > 2),
  },
  {
    id: "watch_file_systems",
    group: "kernel",
    title: "watch files by fanotify",
    isFast: false,
  },
  {
    id: "inotify_instances",
    group: "kernel",
    title: "take what all sandboxes have few of together",
    isFast: false,
    notPromised: () => "the kernel counts them for the host user of all sandboxes",
  },
  {
    id: "file_handles",
    group: "kernel",
    title: "open files by handle, past the mounts",
    isFast: true,
  },
  {
    id: "local_descriptor_table",
    group: "kernel",
    title: "write the local descriptor table",
    isFast: false,
    noControl: onlyX64("such table"),
  },
  {
    id: "fixed_addresses",
    group: "kernel",
    title: "switch random addresses off",
    isFast: false,
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
    noControl: unlessSet("kernel.dmesg_restrict", (value) => value > 0),
  },
  {
    id: "terminal_input",
    group: "kernel",
    title: "type into a terminal",
    isFast: true,
    noControl: unlessSet("dev.tty.legacy_tiocsti", (value) => value === 0),
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
    isFast: true,
  },
  {
    id: "netlink_protocols",
    group: "kernel",
    title: "talk to the kernel's subsystems by netlink",
    isFast: false,
  },
];
