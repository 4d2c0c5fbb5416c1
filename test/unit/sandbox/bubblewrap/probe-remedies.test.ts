/**
 * The remedy that is named for each refusal: exactly the option of this kind of host.
 */
import { describe, expect, test } from "vitest";
import type { HostSettings } from "../../../../worker/sandbox/bubblewrap/probe/host-settings.ts";
import {
  freshProcRemedy,
  guardRemedy,
  networkRemedy,
  otherUserRemedy,
  rlimitsRemedy,
  userNamespacesRemedy,
} from "../../../../worker/sandbox/bubblewrap/probe/remedies.ts";
import { settings as host } from "./trial-observation.ts";

describe("bubblewrap that makes no sandbox because of", () => {
  const eperm = "bwrap: No permissions to create new namespace, likely because the kernel does not";
  const uidMap = "bwrap: setting up uid map: Permission denied";
  const cases: readonly (readonly [string, string, Partial<HostSettings>, RegExp])[] = [
    [
      "an added capability",
      "bwrap: Unexpected capabilities but not setuid, old file caps config?",
      { container: "kubernetes" },
      /capabilities: \{drop: \["ALL"\]\}/,
    ],
    ["a sysctl of zero", eperm, { maxUserNamespaces: 0 }, /sysctl -w user\.max_user_namespaces=/],
    [
      "a limit that is reached",
      "bwrap: Creating new namespace failed: nesting depth or … exceeded (ENOSPC)",
      {},
      /sysctl -w user\.max_user_namespaces=/,
    ],
    [
      "Debian's switch",
      eperm,
      { unprivilegedUsernsClone: 0 },
      /sysctl -w kernel\.unprivileged_userns_clone=1/,
    ],
    [
      "Docker's seccomp profile",
      eperm,
      { container: "docker", isFiltered: true },
      /--security-opt seccomp=deploy\/seccomp\.json$/,
    ],
    [
      "the seccomp profile of a pod, also where AppArmor restricts",
      eperm,
      { container: "kubernetes", isFiltered: true, appArmorRestrictsUserns: 1 },
      /seccompProfile: \{type: Localhost/,
    ],
    [
      "Docker's AppArmor profile",
      "bwrap: Failed to make / slave: Permission denied",
      { container: "docker", isFiltered: true },
      /--security-opt apparmor=NAME .*or apparmor=unconfined$/,
    ],
    [
      "Docker's AppArmor profile on Ubuntu, where unconfined does not do",
      "bwrap: Failed to make / slave: Permission denied",
      { container: "docker", isFiltered: true, appArmorRestrictsUserns: 1 },
      /not unconfined alone/,
    ],
    [
      "Ubuntu's restriction",
      uidMap,
      { appArmorRestrictsUserns: 1 },
      /kernel\.apparmor_restrict_unprivileged_userns=0.*`userns,`/,
    ],
    ["something nobody knows", uidMap, {}, /CONFIG_USER_NS/],
  ];

  test.each(cases)("%s", (_, refusal, changes, remedy) => {
    expect(userNamespacesRemedy(refusal, host(changes))).toMatch(remedy);
  });
});

describe("a network namespace that is refused because of", () => {
  const cases: readonly (readonly [string, string, Partial<HostSettings>, RegExp])[] = [
    [
      "Ubuntu's restriction",
      "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
      { appArmorRestrictsUserns: 1 },
      /kernel\.apparmor_restrict_unprivileged_userns=0/,
    ],
    [
      "another security module",
      "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
      { container: "docker" },
      /--security-opt apparmor=/,
    ],
    ["a sysctl", "bwrap: … exceeded (ENOSPC)", {}, /sysctl -w user\.max_net_namespaces=/],
    ["a seccomp profile", "bwrap: Operation not permitted", {}, /CLONE_NEWNET/],
  ];

  test.each(cases)("%s", (_, refusal, changes, remedy) => {
    expect(networkRemedy(refusal, host(changes))).toMatch(remedy);
  });
});

describe("the option is spelled as it is", () => {
  test.each([
    ["docker", "--security-opt systempaths=unconfined"],
    ["podman", "--security-opt unmask=ALL"],
    ["kubernetes", "procMount: Unmasked"],
  ] as const)("in %s", (container, spelling) => {
    expect(freshProcRemedy(host({ container }))).toContain(`: ${spelling}`);
  });

  test("in all of them, where it does not show what the worker runs in", () => {
    expect(freshProcRemedy(host())).toMatch(
      /Docker: .*systempaths=unconfined; podman: .*unmask=ALL; Kubernetes: procMount: Unmasked/,
    );
  });
});

describe("a worker that is root", () => {
  test("is to be an ordinary user where that is what hinders", () => {
    const root = host({ uid: 0, container: "docker" });
    expect(guardRemedy(true, root)).toMatch(/--user 1000:1000.*CAP_SYS_PTRACE/);
    expect(rlimitsRemedy(root)).toMatch(/--user 1000:1000/);
    expect(otherUserRemedy(root)).toMatch(/--user 1000:1000/);
  });

  test("is not to blame where it is none, or where nothing of processes shows", () => {
    expect(guardRemedy(true, host())).not.toMatch(/--user/);
    expect(guardRemedy(false, host({ uid: 0 }))).toMatch(/CONFIG_PROC_CHILDREN/);
  });
});
