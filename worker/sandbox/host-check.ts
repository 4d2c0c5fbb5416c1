/**
 * Checks of a host: the features that sandboxes need, and the operator's minimum.
 */

/** Checks that a backend makes when it opens, in the order of reports. */
export const backendCheckNames = [
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

/** All checks, in the order of reports. */
export const checkNames = [...backendCheckNames, "egress"] as const;

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
 * | `tmpfs`             | tmpfs ends at its size                                                         |
 * | `guard`             | the worker sees what a sandbox uses: processes, memory, tmpfs                  |
 * | `cgroups`           | the kernel keeps totals of memory and processes, and counts CPU time           |
 * | `egress`            | the worker can serve a list of hosts inside a sandbox                          |
 */
export type CheckName = (typeof checkNames)[number];

/** `partly`: the finding names the part that holds. Only `held` meets a minimum. */
export type CheckState = "held" | "partly" | "missing";

/** The result of one check. */
export interface HostCheck {
  readonly name: CheckName;
  readonly state: CheckState;
  /** The finding, in plain words. It may name host paths. */
  readonly finding: string;
  /** The missing option of kernel, container or Kubernetes; undefined when the check is held. */
  readonly remedy: string | undefined;
}

/** The result of an examination. */
export interface HostExamination {
  /** One line: technology and version. */
  readonly technology: string;
  /** Every check, in their order. */
  readonly checks: readonly HostCheck[];
}

/**
 * Optional checks: few containers and services have control groups or a new /proc, and only tools
 * with a list of hosts need `egress`.
 */
const extras: readonly CheckName[] = ["fresh-proc", "cgroups", "egress"];

/** Minimum of a host by default. */
export const defaultMinimum: readonly CheckName[] = checkNames.filter(
  (name) => !extras.includes(name),
);

/** Required checks for this minimum; user namespaces are always required. */
export function requiredChecks(minimum: readonly CheckName[]): readonly CheckName[] {
  return checkNames.filter((name) => name === "user-namespaces" || minimum.includes(name));
}

/** Required checks that are not held, in the order of `checks`. */
export function unmetChecks(
  checks: readonly HostCheck[],
  minimum: readonly CheckName[],
): readonly HostCheck[] {
  const required = requiredChecks(minimum);
  return checks.filter(({ name, state }) => state !== "held" && required.includes(name));
}

/** A check in JSON; docs/doctor.md documents the members. */
export interface ReportedCheck extends Omit<HostCheck, "remedy"> {
  /** Whether a worker with this minimum requires it. */
  readonly required: boolean;
  readonly remedy: string | null;
}

/** Checks in JSON, for the doctor and for a worker's health. */
export function reportedChecks(
  checks: readonly HostCheck[],
  minimum: readonly CheckName[],
): readonly ReportedCheck[] {
  const required = requiredChecks(minimum);
  return checks.map(({ name, state, finding, remedy = null }) => {
    return { name, state, required: required.includes(name), finding, remedy };
  });
}

/** Why a worker does not start, where these checks of its minimum are not held. */
export function describeUnmet(unmet: readonly HostCheck[]): string {
  return `this host does not hold what is asked of it (see docs/doctor.md)\n${describeChecks(unmet)}`;
}

/** Failed checks as lines of text, each with its remedy; names of untried ones come last. */
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
