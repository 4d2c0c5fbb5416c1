/**
 * The system-call filter of a sandbox: a classic BPF program for `bwrap --seccomp`. See seccomp(2).
 */
import type { SystemCallFilter } from "../../profile.ts";
import {
  type FilteredArch,
  type SyscallNumbers,
  inspectedCalls,
  networkCalls,
  refusedCalls,
  unfitCalls,
  unknownCalls,
} from "../../syscalls/syscalls.ts";
import {
  type Instruction,
  type Rule,
  encode,
  giveBack,
  load,
  offsets,
  onAtLeast,
  unlessEqual,
} from "./bpf.ts";
import {
  allowSyncedFilter,
  inspections,
  inspectionsOfStrict,
  inspectionsOfTemplates,
} from "./inspections.ts";
import { actions, decide, errnos } from "./verdicts.ts";

/** AUDIT_ARCH_… of linux/audit.h. */
const auditArchs: Readonly<Record<FilteredArch, number>> = {
  x64: 0xc000_003e,
  arm64: 0xc000_00b7,
};

/**
 * Calls of the x32 ABI are x86-64 calls with this bit, and would pass every comparison of numbers.
 */
const x32Bit = 0x4000_0000;

/**
 * What a filter is for: what runs a tool, or what makes sandboxes for tools, each of which puts on
 * the other one besides.
 */
export type FilterUse = "tool" | "template";

/** What decides a filter beside its architecture. */
export interface FilterOptions {
  /** `tool` unless given. */
  readonly use?: FilterUse;
  /** `usual` unless given. */
  readonly systemCalls?: SystemCallFilter;
  /** Whether it passes the one operation by which a process adds a filter on all its threads. */
  readonly addsFilter?: boolean;
}

/** Calls that a template needs besides, to make its children and to place them. */
const callsOfTemplates: ReadonlySet<string> = new Set(["unshare", "mount", "sched_setaffinity"]);

/** Whether there is a filter for an architecture. */
export function isFilteredArch(arch: string): arch is FilteredArch {
  return Object.hasOwn(auditArchs, arch);
}

/**
 * The filter for an architecture, as bytes of struct sock_filter. It kills on calls of another
 * architecture, answers calls that some kernels do not have with ENOSYS and those that do not fit
 * every descriptor with EINVAL, refuses those that no tool needs with EPERM, and lets everything
 * else pass.
 */
export function seccompProgram(arch: FilteredArch, options: FilterOptions = {}): Uint8Array {
  return encode([
    load(offsets.arch),
    ...unlessEqual(auditArchs[arch], [giveBack(actions.killProcess)]),
    load(offsets.number),
    ...(arch === "x64" ? onAtLeast(x32Bit, [giveBack(actions.killProcess)]) : []),
    ...decide(rulesOf(arch, options), actions.allow),
  ]);
}

function rulesOf(
  arch: FilteredArch,
  { use = "tool", systemCalls = "usual", addsFilter = false }: FilterOptions,
): readonly Rule[] {
  const isStrict = systemCalls === "strict";
  const inspected = {
    ...(use === "template" ? inspectionsOfTemplates : inspections),
    ...(isStrict && use === "tool" ? inspectionsOfStrict : {}),
    ...(addsFilter ? { seccomp: allowSyncedFilter() } : {}),
  };
  const refused = Object.entries(refusedCalls).filter(
    ([name]) => use !== "template" || !callsOfTemplates.has(name),
  );
  const ruleOf = (numbers: SyscallNumbers, block: readonly Instruction[]): readonly Rule[] => {
    const number = numbers[arch];
    return number === undefined ? [] : [{ number, block }];
  };
  const failing = (calls: Readonly<Record<string, SyscallNumbers>>, errno: number) =>
    Object.values(calls).flatMap((numbers) => ruleOf(numbers, [giveBack(actions.fail(errno))]));
  return [
    ...Object.entries(inspected).flatMap(([name, block]) =>
      ruleOf(inspectedCalls[name as keyof typeof inspectedCalls], block),
    ),
    ...failing(unknownCalls, errnos.ENOSYS),
    ...failing(unfitCalls, errnos.EINVAL),
    ...failing(Object.fromEntries(refused), errnos.EPERM),
    ...(isStrict ? failing(strictlyRefused(use), errnos.EPERM) : []),
  ];
}

/** Children of a template connect to the worker before they put on a tool's filter. */
function strictlyRefused(use: FilterUse): Readonly<Record<string, SyscallNumbers>> {
  const { connect, ...others } = networkCalls;
  return use === "template" ? others : { connect, ...others };
}
