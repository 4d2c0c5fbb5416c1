/**
 * What a host has to allow for sandboxes to hold, check by check, and the least that an operator asks for.
 */

/** Every check, in the order in which they are told. */
export const checkNames = [
  "user-namespaces",
  "nested-namespaces",
  "proc",
  "fresh-proc",
  "network-namespace",
  "seccomp",
  "rlimits",
  "tmpfs",
  "guard",
  "cgroups",
] as const;

/**
 * Name of a check.
 *
 * | name                | held when                                                                     |
 * |---------------------|-------------------------------------------------------------------------------|
 * | `user-namespaces`   | sandboxes can be made: namespaces of every kind, without privilege             |
 * | `nested-namespaces` | a tool cannot make a user namespace of its own                                 |
 * | `proc`              | /proc shows nothing of the host's processes: it is the sandbox's own, or empty |
 * | `fresh-proc`        | /proc is the sandbox's own                                                     |
 * | `network-namespace` | a sandbox without the host's network can be made                               |
 * | `seccomp`           | the filter of system calls is on                                               |
 * | `rlimits`           | rlimits are in force, and processes are counted for each sandbox               |
 * | `tmpfs`             | private file systems in memory end at their size                               |
 * | `guard`             | the worker sees what a sandbox uses: processes, memory, private files          |
 * | `cgroups`           | the kernel keeps totals of memory and processes, and counts CPU time           |
 */
export type CheckName = (typeof checkNames)[number];

/** `partly`: some of it holds; the finding says what. Only `held` meets a minimum. */
export type CheckState = "held" | "partly" | "missing";

/** What one check found. */
export interface HostCheck {
  readonly name: CheckName;
  readonly state: CheckState;
  /** What was found, in plain words. It may name host paths. */
  readonly finding: string;
  /** Which option of kernel, container or Kubernetes is missing and how to give it; undefined when it is held. */
  readonly remedy: string | undefined;
}

/** What an examination of a host found. */
export interface HostExamination {
  /** One line: technology and version. */
  readonly technology: string;
  /** Every check, in their order. */
  readonly checks: readonly HostCheck[];
}

/** Checks that are not asked for unless by name: few containers and services give control groups or a new /proc. */
const extras: readonly CheckName[] = ["fresh-proc", "cgroups"];

/** What is asked of a host unless the operator says otherwise. */
export const defaultMinimum: readonly CheckName[] = checkNames.filter(
  (name) => !extras.includes(name),
);

/** The checks of a minimum that are not held, in the order of `checks`. User namespaces are always asked for. */
export function unmetChecks(
  checks: readonly HostCheck[],
  minimum: readonly CheckName[],
): readonly HostCheck[] {
  const asked = new Set<CheckName>(["user-namespaces", ...minimum]);
  return checks.filter(({ name, state }) => state !== "held" && asked.has(name));
}

/** Checks that are not held as lines of text, each with its remedy; what could not be tried comes last, by name. */
export function describeChecks(checks: readonly HostCheck[]): string {
  const explained = checks.filter(({ remedy }) => remedy !== undefined);
  const others = checks.filter(({ remedy }) => remedy === undefined).map(({ name }) => name);
  return [
    ...explained.map(
      ({ name, state, finding, remedy }) => `${name} is ${state}: ${finding}\n  ${remedy}`,
    ),
    ...(others.length === 0 ? [] : [`not tried because of that: ${others.join(", ")}`]),
  ].join("\n");
}
