/**
 * The system-call filter of sandboxes in the format of OCI runtimes: the same calls as bubblewrap's
 * filter refuses, and their arguments as far as that format can say it.
 */
import {
  internetProtocols,
  processOptions,
  refusedQuestions,
  refusedSettings,
  setModeFilter,
} from "../syscalls/call-options.ts";
import { refusedCalls, unfitCalls, unknownCalls } from "../syscalls/syscalls.ts";

const errnos = { EPERM: 1, ENOMEM: 12, EINVAL: 22, ENOSYS: 38, ENOPROTOOPT: 92 } as const;
const networkErrnos = { EPROTONOSUPPORT: 93, EAFNOSUPPORT: 97 } as const;

/** Names of this machine's architecture; one without has no filter. */
const architectures: Partial<Record<NodeJS.Architecture, string>> = {
  x64: "SCMP_ARCH_X86_64",
  arm64: "SCMP_ARCH_AARCH64",
};

/** Flags of clone(2) that make a namespace: mount, cgroup, uts, ipc, user, pid, net. */
const namespaceFlags = [17, 25, 26, 27, 28, 29, 30].map((bit) => 2 ** bit);
/** Flag of close_range(2) that gives a thread descriptors of its own. */
const closeRangeUnshare = 0x2;
/** Flag of mmap(2) for pages of hugetlbfs, which no account has. */
const hugePages = 0x0004_0000;
/** F_SETLEASE, F_NOTIFY and F_SETDELEG of fcntl(2), by which one watches others' files. */
const watchingCommands = [1024, 1026, 1040];
/** TIOCSTI, TIOCLINUX and TIOCSETD of ioctl_tty(2). */
const terminalRequests = [0x5412, 0x541c, 0x5423];
/** Local, IPv4, IPv6 and netlink sockets. */
const socketFamilies = [1, 2, 10, 16];
/** Families of the internet, and netlink, whose protocols count. */
const families = { inet: 2, inet6: 10, netlink: 16 } as const;
/** No protocol of netlink(7) but the one that tells interfaces. */
const netlinkRoute = 0;
/** Numbers that a call with an option has; a greater one is refused as one of these is. */
const maxOption = 127;

interface Condition {
  readonly index: number;
  readonly op: "SCMP_CMP_EQ" | "SCMP_CMP_GT" | "SCMP_CMP_NE" | "SCMP_CMP_MASKED_EQ";
  readonly value: number;
  readonly valueTwo?: number;
}

interface Rule {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ERRNO";
  readonly errnoRet: number;
  readonly args?: readonly Condition[];
}

/** The member `linux.seccomp`, or undefined where this architecture has no filter. */
export function ociSeccomp(arch: NodeJS.Architecture): object | undefined {
  const architecture = architectures[arch];
  if (architecture === undefined) return undefined;
  return {
    defaultAction: "SCMP_ACT_ALLOW",
    architectures: [architecture],
    syscalls: [
      refuse(Object.keys(unknownCalls), errnos.ENOSYS),
      refuse(Object.keys(unfitCalls), errnos.EINVAL),
      refuse(Object.keys(refusedCalls), errnos.EPERM),
      ...onAnyBit("clone", 0, namespaceFlags, errnos.EPERM),
      ...onAnyBit("close_range", 2, [closeRangeUnshare], errnos.ENOSYS),
      ...onAnyBit("mmap", 3, [hugePages], errnos.ENOMEM),
      ...on("fcntl", 1, watchingCommands, errnos.EINVAL),
      ...on("ioctl", 1, terminalRequests, errnos.EPERM),
      ...on("seccomp", 0, [setModeFilter], errnos.EINVAL),
      ...optionRules(),
      ...socketRules(),
    ],
  };
}

/** PR_SET_DUMPABLE is refused whole, and PR_GET_AUXV lies beyond the greatest option. */
function optionRules(): readonly Rule[] {
  return [
    ...allExcept("prctl", 0, Object.values(processOptions), errnos.EINVAL),
    ...[
      { name: "setsockopt", refused: refusedSettings },
      { name: "getsockopt", refused: refusedQuestions },
    ].flatMap(({ name, refused }) =>
      refused.flatMap(({ level, options }) =>
        Object.values(options).map((option) =>
          refuse([name], errnos.ENOPROTOOPT, [equal(1, level), equal(2, option)]),
        ),
      ),
    ),
  ];
}

function socketRules(): readonly Rule[] {
  const { EAFNOSUPPORT, EPROTONOSUPPORT } = networkErrnos;
  const protocols = Object.values(internetProtocols);
  return [
    ...allExcept("socket", 0, socketFamilies, EAFNOSUPPORT),
    ...allExcept("socketpair", 0, socketFamilies, EAFNOSUPPORT),
    ...[families.inet, families.inet6].flatMap((family) =>
      allExcept("socket", 2, protocols, EPROTONOSUPPORT, [equal(0, family)]),
    ),
    refuse(["socket"], EPROTONOSUPPORT, [equal(0, families.netlink), unequal(2, netlinkRoute)]),
  ];
}

function refuse(names: readonly string[], errnoRet: number, args?: readonly Condition[]): Rule {
  const rule = { names, action: "SCMP_ACT_ERRNO", errnoRet } as const;
  return args === undefined ? rule : { ...rule, args };
}

const equal = (index: number, value: number): Condition => ({ index, op: "SCMP_CMP_EQ", value });
const unequal = (index: number, value: number): Condition => ({ index, op: "SCMP_CMP_NE", value });

function on(name: string, index: number, values: readonly number[], errno: number) {
  return values.map((value) => refuse([name], errno, [equal(index, value)]));
}

function onAnyBit(name: string, index: number, bits: readonly number[], errno: number) {
  return bits.map((bit) => {
    const condition = { index, op: "SCMP_CMP_MASKED_EQ", value: bit, valueTwo: bit } as const;
    return refuse([name], errno, [condition]);
  });
}

/** A rule has one condition for an argument, so each refused number has a rule. */
function allExcept(
  name: string,
  index: number,
  allowed: readonly number[],
  errno: number,
  others: readonly Condition[] = [],
): readonly Rule[] {
  const numbers = Array.from({ length: maxOption + 1 }, (_, number) => number);
  const beyond: Condition = { index, op: "SCMP_CMP_GT", value: maxOption };
  return [
    ...numbers.filter((number) => !allowed.includes(number)).map((n) => equal(index, n)),
    beyond,
  ].map((condition) => refuse([name], errno, [...others, condition]));
}
