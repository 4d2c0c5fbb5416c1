/**
 * Judges each check by the observations of trial sandboxes; a pure function.
 */
import type { CgroupsFound } from "../../cgroup/cgroup.ts";
import { type HostCheck, backendCheckNames } from "../../host-check.ts";
import { resourceOf } from "../../rlimits.ts";
import type { HostSettings } from "./host-settings.ts";
import { type TrialObservation, tightLimits } from "./probe-script.ts";
import {
  freshProcRemedy,
  guardRemedy,
  nestedRemedy,
  networkRemedy,
  rlimitsRemedy,
  seccompRemedy,
  tmpfsRemedy,
  userNamespacesRemedy,
} from "./remedies.ts";

/** Refusal of each feature in bubblewrap's words; undefined for those the host has. */
export interface Refusals {
  readonly userNamespaces?: string | undefined;
  /** Limit of zero for user namespaces inside. */
  readonly nestedLimit?: string | undefined;
  readonly freshProc?: string | undefined;
  readonly network?: string | undefined;
  /** The sandbox's own host name. */
  readonly hostName?: string | undefined;
  readonly seccomp?: string | undefined;
}

/** The evidence of all trials of one host. */
export interface Evidence {
  readonly refusals: Refusals;
  /** One concurrent trial of each profile; none without user namespaces. */
  readonly observations: readonly TrialObservation[];
  /** The refusal of a user namespace inside by the limit alone, or `made`; undefined untried. */
  readonly nestedWithoutFilter: string | undefined;
  /** The worker's own filters and network namespace, for comparison. */
  readonly workerFilters: number | undefined;
  readonly workerNetwork: number | undefined;
  readonly arch: string;
  readonly isFilteredArch: boolean;
  /** Undefined when they are left alone. */
  readonly cgroups: CgroupsFound | undefined;
  readonly settings: HostSettings;
}

type Finding = Omit<HostCheck, "name">;

const held = (finding: string): Finding => ({ state: "held", finding, remedy: undefined });
const missing = (finding: string, remedy?: string): Finding => ({
  state: "missing",
  finding,
  remedy,
});

const pipedCoreDumps =
  "; kernel.core_pattern hands core dumps to a program of the host's all the same, those of sandboxes without their memory";

const foreignProc = "it shows processes that are not of the sandbox";

/** The backend's checks, in the order of reports. */
export function judge(evidence: Evidence): readonly HostCheck[] {
  const noSandbox = evidence.observations.length === 0;
  return backendCheckNames.map((name) => {
    const needsSandbox = name !== "user-namespaces" && name !== "cgroups";
    return {
      name,
      ...(noSandbox && needsSandbox
        ? missing("not tried, since there is no sandbox to try it in")
        : judges[name](evidence)),
    };
  });
}

type BackendCheckName = (typeof backendCheckNames)[number];

const judges: Readonly<Record<BackendCheckName, (evidence: Evidence) => Finding>> = {
  "user-namespaces": ({ refusals, observations, settings }) =>
    refusals.userNamespaces === undefined
      ? held(
          `sandboxes were made with the profiles ${observations.map(({ profile }) => profile).join(", ")}`,
        )
      : missing(
          `bubblewrap says: ${refusals.userNamespaces}`,
          userNamespacesRemedy(refusals.userNamespaces, settings),
        ),
  "nested-namespaces": judgeNested,
  proc: ({ observations, settings }) =>
    observations.some(({ proc }) => proc === "other")
      ? missing(foreignProc, freshProcRemedy(settings))
      : held(
          observations.every(({ proc }) => proc === "own") ? "the sandbox's own" : "empty inside",
        ),
  "fresh-proc": ({ observations, refusals, settings }) => {
    if (observations.every(({ proc }) => proc === "own")) return held("the sandbox's own");
    const empty = `empty inside; bubblewrap says: ${refusals.freshProc}`;
    const isForeign = observations.some(({ proc }) => proc === "other");
    return missing(isForeign ? foreignProc : empty, freshProcRemedy(settings));
  },
  "network-namespace": judgeNetwork,
  seccomp: judgeSeccomp,
  rlimits: judgeRlimits,
  tmpfs: ({ observations }) => {
    const endless = new Set(observations.flatMap(({ endless }) => endless));
    return endless.size === 0
      ? held("writing ends with ENOSPC at the size")
      : missing(`no end at the size of ${[...endless].join(" and ")}`, tmpfsRemedy());
  },
  guard: judgeGuard,
  cgroups: judgeCgroups,
};

function judgeNested(evidence: Evidence): Finding {
  const { observations, nestedWithoutFilter, refusals, settings } = evidence;
  if (observations.some(({ nested }) => nested === "made")) {
    const why = refusals.nestedLimit ?? "it says nothing";
    return missing(
      `a tool can make a user namespace; bubblewrap says of its limit: ${why}`,
      nestedRemedy(settings),
    );
  }
  const byLimit = nestedWithoutFilter !== undefined && nestedWithoutFilter !== "made";
  if (byLimit && isFilterOn(evidence))
    return held("refused inside, by a limit and by the filter of system calls");
  if (byLimit) return held("refused inside, by a limit");
  return held(
    `refused inside, by the filter of system calls alone; bubblewrap says of a limit: ${refusals.nestedLimit}`,
  );
}

function judgeNetwork({ observations, refusals, workerNetwork, settings }: Evidence): Finding {
  if (refusals.network !== undefined) {
    return missing(
      `bubblewrap says: ${refusals.network}`,
      networkRemedy(refusals.network, settings),
    );
  }
  const isOwn = observations
    .filter(({ network }) => network === "none")
    .every(({ networkNamespace: own }) => own !== undefined && own !== workerNetwork);
  return isOwn
    ? held("profiles without a network have a namespace of their own")
    : missing("a sandbox without a network is in the worker's", networkRemedy("", settings));
}

/** Whether each sandbox has a filter, and its refusal has the filter's error. */
function isFilterOn({ observations, workerFilters }: Evidence): boolean {
  return observations.every(({ nested, filters }) => {
    const isCounted = filters === undefined || filters > (workerFilters ?? 0);
    return isCounted && nested.includes("Operation not permitted");
  });
}

function judgeSeccomp(evidence: Evidence): Finding {
  const { refusals, arch, isFilteredArch } = evidence;
  const remedy = seccompRemedy(isFilteredArch, arch);
  if (!isFilteredArch) return missing(`there is no filter for ${arch}`, remedy);
  if (refusals.seccomp !== undefined)
    return missing(`bubblewrap says: ${refusals.seccomp}`, remedy);
  return isFilterOn(evidence)
    ? held("the filter is on, and refuses what it should")
    : missing("the filter is not on in every sandbox", remedy);
}

function judgeRlimits({ observations, settings }: Evidence): Finding {
  const remedy = rlimitsRemedy(settings);
  const wrong = new Set(observations.flatMap(({ wrongLimits }) => wrongLimits));
  const names = [...wrong].map((name) => `RLIMIT_${resourceOf(name)}`);
  if (names.length > 0) return missing(`not in force: ${names.join(", ")}`, remedy);
  const started = observations.map(({ startedProcesses }) => startedProcesses);
  const finding = (what: string): Finding => ({ state: "partly", finding: what, remedy });
  if (started.includes(undefined)) return finding("all but the number of processes");
  const sum = started.reduce<number>((total, count) => total + (count ?? 0), 0);
  // The sandboxes run together, so that a common count would have stopped them earlier.
  return observations.length === 1 || sum > tightLimits.processes
    ? held(
        `in force, and processes are counted for each sandbox${settings.pipesCoreDumps ? pipedCoreDumps : ""}`,
      )
    : finding("in force, but processes of all sandboxes are counted together");
}

function judgeGuard({ observations, settings }: Evidence): Finding {
  const seesProcesses = observations.every(({ seesProcesses }) => seesProcesses);
  const seesFiles = observations.every(({ seesFiles }) => seesFiles);
  if (seesProcesses && seesFiles)
    return held("the worker sees the processes of a sandbox, their memory and their tmpfs usage");
  const remedy = guardRemedy(seesProcesses, settings);
  if (!seesProcesses) return missing("the worker does not see what processes hold", remedy);
  const finding = "the worker sees processes and their memory, but not the usage of their tmpfs";
  return { state: "partly", finding, remedy };
}

function judgeCgroups({ cgroups: found }: Evidence): Finding {
  if (found === undefined) return missing("not tried");
  const { cgroups, reason, remedy, remark } = found;
  const finding = [cgroups?.description, reason, remark]
    .filter((text) => text !== undefined)
    .join("; ");
  if (cgroups === undefined) return missing(finding, remedy);
  const keepsAll = Object.values(cgroups.controls).every(Boolean);
  return keepsAll ? held(finding) : { state: "partly", finding, remedy };
}
