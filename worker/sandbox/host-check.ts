/**
 * What a host has to allow for sandboxes to hold, check by check, and the least that an operator
 * asks for.
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
  /**
   * Which option of kernel, container or Kubernetes is missing and how to give it; undefined when
   * it is held.
   */
  readonly remedy: string | undefined;
}

/** What an examination of a host found. */
export interface HostExamination {
  /** One line: technology and version. */
  readonly technology: string;
  /** Every check, in their order. */
  readonly checks: readonly HostCheck[];
}

/**
 * Checks that are not asked for unless by name: few containers and services give control groups or
 * a new /proc.
 */
const extras: readonly CheckName[] = ["fresh-proc", "cgroups"];

/** What is asked of a host unless the operator says otherwise. */
export const defaultMinimum: readonly CheckName[] = checkNames.filter(
  (name) => !extras.includes(name),
);

/**
 * The checks that a worker with this minimum requires, in their order. It never does without user
 * namespaces.
 */
export function requiredChecks(minimum: readonly CheckName[]): readonly CheckName[] {
  return checkNames.filter((name) => name === "user-namespaces" || minimum.includes(name));
}

/** What is required with this minimum and not held, in the order of `checks`. */
export function unmetChecks(
  checks: readonly HostCheck[],
  minimum: readonly CheckName[],
): readonly HostCheck[] {
  const required = requiredChecks(minimum);
  return checks.filter(({ name, state }) => state !== "held" && required.includes(name));
}

/** A check as machines are told of it; docs/doctor.md documents the members. */
export interface ReportedCheck extends Omit<HostCheck, "remedy"> {
  /** Whether a worker with this minimum does not start without. */
  readonly required: boolean;
  readonly remedy: string | null;
}

/** Checks for machines: for the doctor, and for a worker's own findings. */
export function reportedChecks(
  checks: readonly HostCheck[],
  minimum: readonly CheckName[],
): readonly ReportedCheck[] {
  const required = requiredChecks(minimum);
  return checks.map(({ name, state, finding, remedy = null }) => {
    return { name, state, required: required.includes(name), finding, remedy };
  });
}

/**
 * Checks that are not held as lines of text, each with its remedy; what could not be tried comes
 * last, by name.
 */
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
