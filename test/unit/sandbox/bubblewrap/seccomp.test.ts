/**
 * The system-call filter, run by an interpreter for both architectures, and its numbers against the
 * kernel's headers.
 */
import { existsSync, readFileSync } from "node:fs";
import { test as propertyTest, fc } from "../../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import {
  type FilterOptions,
  isFilteredArch,
  seccompProgram,
} from "../../../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import {
  type FilteredArch,
  type SyscallNumbers,
  inspectedCalls,
  networkCalls,
  refusedCalls,
  unfitCalls,
  unknownCalls,
} from "../../../../worker/sandbox/syscalls/syscalls.ts";
import { BpfProgram, maxInstructions } from "./bpf-interpreter.ts";

const auditArchs = { x64: 0xc000_003e, arm64: 0xc000_00b7 };
const auditArchI386 = 0x4000_0003;
const auditArchArm = 0x4000_0028;

const outcomes = {
  allowed: 0x7fff_0000,
  killed: 0x8000_0000,
  EPERM: 0x0005_0001,
  ENOMEM: 0x0005_000c,
  EINVAL: 0x0005_0016,
  ENOPROTOOPT: 0x0005_005c,
  ENOSYS: 0x0005_0026,
  EPROTONOSUPPORT: 0x0005_005d,
  EAFNOSUPPORT: 0x0005_0061,
};
type Outcome = keyof typeof outcomes;

function outcomeOf(value: number): Outcome {
  const entry = Object.entries(outcomes).find(([, known]) => known === value);
  if (entry === undefined) throw new Error(`the kernel was told ${value.toString(16)}`);
  return entry[0] as Outcome;
}

/** Calls that tools are made of. */
const everydayCalls = {
  x64: {
    ...{ read: 0, write: 1, close: 3, poll: 7, mmap: 9, mprotect: 10, brk: 12, rt_sigaction: 13 },
    ...{ dup2: 33, alarm: 37, connect: 42, sendmsg: 46, recvmsg: 47, bind: 49, listen: 50 },
    ...{ fork: 57, vfork: 58, execve: 59, exit: 60, wait4: 61, kill: 62, fcntl: 72, mkdir: 83 },
    ...{ mremap: 25, copy_file_range: 326, flock: 73, preadv2: 327, mq_open: 240 },
    ...{ arch_prctl: 158, setrlimit: 160, futex: 202, sched_getaffinity: 204 },
    ...{ exit_group: 231, openat: 257, set_robust_list: 273, epoll_pwait: 281, pipe2: 293 },
    ...{ prlimit64: 302, getrandom: 318, statx: 332, rseq: 334 },
    ...{ pidfd_send_signal: 424, pidfd_open: 434, close_range: 436, openat2: 437 },
  },
  arm64: {
    ...{ read: 63, write: 64, close: 57, ppoll: 73, mmap: 222, mprotect: 226, brk: 214 },
    ...{ rt_sigaction: 134, dup3: 24, setitimer: 103, connect: 203, sendmsg: 211, recvmsg: 212 },
    ...{ bind: 200, listen: 201, execve: 221, exit: 93, wait4: 260, kill: 129, fcntl: 25 },
    ...{ mremap: 216, copy_file_range: 285, flock: 32, preadv2: 286, mq_open: 180 },
    ...{ mkdirat: 34, setrlimit: 164, futex: 98, sched_getaffinity: 123 },
    ...{ exit_group: 94, openat: 56, set_robust_list: 99, epoll_pwait: 22, pipe2: 59 },
    ...{ prlimit64: 261, getrandom: 278, statx: 291, rseq: 293 },
    ...{ pidfd_send_signal: 424, pidfd_open: 434, close_range: 436, openat2: 437 },
  },
} satisfies Record<FilteredArch, Record<string, number>>;

const namespaceFlags = {
  CLONE_NEWNS: 0x0002_0000n,
  CLONE_NEWCGROUP: 0x0200_0000n,
  CLONE_NEWUTS: 0x0400_0000n,
  CLONE_NEWIPC: 0x0800_0000n,
  CLONE_NEWUSER: 0x1000_0000n,
  CLONE_NEWPID: 0x2000_0000n,
  CLONE_NEWNET: 0x4000_0000n,
};
/** As strace shows them for pthread_create, fork, and posix_spawn of glibc. */
const ordinaryCloneFlags = { thread: 0x003d_0f00n, fork: 0x0120_0011n, spawn: 0x0000_4111n };
/** As the sources of musl and of Go's runtime have them, for threads. */
const otherThreadFlags = { musl: 0x007d_0f00n, go: 0x0005_0f00n };

const allowedFamilies = { AF_UNIX: 1n, AF_INET: 2n, AF_INET6: 10n, AF_NETLINK: 16n };
const lastFamily = 64;

/** One more or less is a decision. Of PR_SET_DUMPABLE an argument decides. */
const allowedProcessOptions = [
  ...[1, 2, 3, 7, 15, 16, 21, 23, 25, 27, 29, 30, 36, 37, 38, 39, 40, 41, 42, 51, 52, 53, 55, 56],
  ...[64, 65, 66, 74, 75, 76, 0x4155_5856],
];

const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const uint32 = fc.nat({ max: 0xffff_ffff });
const sixArguments = fc.array(uint64, { minLength: 6, maxLength: 6 });

describe.each(["x64", "arm64"] as const)("the filter for %s", { tags: "promise-S5" }, (arch) => {
  const program = new BpfProgram(seccompProgram(arch));
  const inspected = {
    clone: inspectedCalls.clone[arch]!,
    close_range: inspectedCalls.close_range[arch]!,
    fcntl: inspectedCalls.fcntl[arch]!,
    getsockopt: inspectedCalls.getsockopt[arch]!,
    ioctl: inspectedCalls.ioctl[arch]!,
    mmap: inspectedCalls.mmap[arch]!,
    personality: inspectedCalls.personality[arch]!,
    prctl: inspectedCalls.prctl[arch]!,
    seccomp: inspectedCalls.seccomp[arch]!,
    setsockopt: inspectedCalls.setsockopt[arch]!,
    socket: inspectedCalls.socket[arch]!,
    socketpair: inspectedCalls.socketpair[arch]!,
  };
  const decide = (number: number, ...args: readonly bigint[]): Outcome =>
    outcomeOf(program.run({ number, arch: auditArchs[arch], arguments: args }));

  test("is short enough for the kernel, and what `--seccomp` reads: whole instructions", () => {
    expect(program.length).toBeLessThan(maxInstructions);
    expect(seccompProgram(arch)).toHaveLength(program.length * 8);
  });

  const refused = Object.entries(refusedCalls).filter(([, numbers]) => numbers[arch] !== undefined);
  test.each(refused)("refuses %s", (_, numbers) => {
    expect(decide(numbers[arch]!)).toBe("EPERM");
    expect(decide(numbers[arch]!, ...Array<bigint>(6).fill(2n ** 64n - 1n))).toBe("EPERM");
  });

  test.each(Object.entries(unknownCalls))("says that there is no %s", (_, numbers) => {
    expect(decide(numbers[arch]!)).toBe("ENOSYS");
    expect(decide(numbers[arch]!, ...Array<bigint>(6).fill(2n ** 64n - 1n))).toBe("ENOSYS");
  });

  test.each(Object.entries(unfitCalls))("says that %s does not fit", (_, numbers) => {
    expect(decide(numbers[arch]!)).toBe("EINVAL");
    expect(decide(numbers[arch]!, ...Array<bigint>(6).fill(2n ** 64n - 1n))).toBe("EINVAL");
  });

  test.each(Object.entries(namespaceFlags))("refuses a clone with %s", (_, flag) => {
    expect(decide(inspected.clone, flag)).toBe("EPERM");
    for (const ordinary of Object.values(ordinaryCloneFlags)) {
      expect(decide(inspected.clone, ordinary | flag)).toBe("EPERM");
    }
  });

  test.each(Object.entries(ordinaryCloneFlags))("lets a clone for a %s pass", (_, flags) => {
    expect(decide(inspected.clone, flags)).toBe("allowed");
    // The upper half is no flag of this call.
    expect(decide(inspected.clone, flags | (namespaceFlags.CLONE_NEWUSER << 32n))).toBe("allowed");
  });

  test.each(Object.entries({ glibc: ordinaryCloneFlags.thread, ...otherThreadFlags }))(
    "lets a thread of %s share descriptors and directory, and none have its own",
    (_, flags) => {
      const [CLONE_FILES, CLONE_FS] = [0x400n, 0x200n];
      expect(decide(inspected.clone, flags)).toBe("allowed");
      for (const flag of [CLONE_FILES, CLONE_FS]) {
        expect(flags & flag).toBe(flag);
        expect(decide(inspected.clone, flags & ~flag)).toBe("EPERM");
        expect(decide(inspected.clone, (flags & ~flag) | (flag << 32n))).toBe("EPERM");
      }
    },
  );

  test("closes ranges of descriptors of the process, and none that only a thread has", () => {
    const [CLOSE_RANGE_UNSHARE, CLOSE_RANGE_CLOEXEC] = [2n, 4n];
    for (const flags of [0n, CLOSE_RANGE_CLOEXEC, CLOSE_RANGE_UNSHARE << 32n])
      expect(decide(inspected.close_range, 2n, 2n, flags)).toBe("allowed");
    for (const flags of [0n, CLOSE_RANGE_CLOEXEC, 1n << 32n])
      expect(decide(inspected.close_range, 0n, 0n, flags | CLOSE_RANGE_UNSHARE)).toBe("ENOSYS");
  });

  test("maps no huge pages of the host", () => {
    const [MAP_PRIVATE, MAP_ANONYMOUS, MAP_HUGETLB] = [0x2n, 0x20n, 0x4_0000n];
    const plain = MAP_PRIVATE | MAP_ANONYMOUS;
    const mapped = (flags: bigint) => decide(inspected.mmap, 0n, 1n << 21n, 3n, flags);
    expect(mapped(plain)).toBe("allowed");
    expect(mapped(plain | MAP_HUGETLB)).toBe("ENOMEM");
    expect(mapped(plain | MAP_HUGETLB | (30n << 26n))).toBe("ENOMEM");
    expect(decide(inspected.mmap, MAP_HUGETLB, MAP_HUGETLB, 3n, plain, MAP_HUGETLB)).toBe(
      "allowed",
    );
  });

  test("neither sees nor delays how others use a file, and locks files all the same", () => {
    for (const command of [1024n, 1026n, 1040n]) {
      expect(decide(inspected.fcntl, 3n, command)).toBe("EINVAL");
      expect(decide(inspected.fcntl, 3n, command | (1n << 32n))).toBe("EINVAL");
      expect(decide(inspected.fcntl, command, 1n)).toBe("allowed");
    }
    const [F_DUPFD, F_SETFD, F_SETLKW, F_OFD_SETLK] = [0n, 2n, 7n, 37n];
    const [F_GETLEASE, F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_ADD_SEALS] = [1025n, 1030n, 1031n, 1033n];
    for (const command of [F_DUPFD, F_SETFD, F_SETLKW, F_OFD_SETLK])
      expect(decide(inspected.fcntl, 3n, command)).toBe("allowed");
    for (const command of [F_GETLEASE, F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_ADD_SEALS])
      expect(decide(inspected.fcntl, 3n, command)).toBe("allowed");
  });

  test("refuses to put input into a terminal or to change its driver, and lets other requests pass", () => {
    const requests = { TIOCSTI: 0x5412n, TIOCLINUX: 0x541cn, TIOCSETD: 0x5423n };
    for (const request of Object.values(requests)) {
      expect(decide(inspected.ioctl, 0n, request)).toBe("EPERM");
      // The kernel reads 32 bits of it (CVE-2019-10063 was a filter that read 64).
      expect(decide(inspected.ioctl, 0n, request | (1n << 32n))).toBe("EPERM");
      // Only as the request, not as the descriptor or the address.
      expect(decide(inspected.ioctl, request, 0x5401n, request)).toBe("allowed");
    }
    const harmless = { TCGETS: 0x5401n, TIOCGWINSZ: 0x5413n, FIONREAD: 0x541bn, FIONBIO: 0x5421n };
    for (const request of Object.values(harmless)) {
      expect(decide(inspected.ioctl, 0n, request)).toBe("allowed");
    }
  });

  test("lets the usual personality be asked for, and no other", () => {
    const others = {
      ADDR_NO_RANDOMIZE: 0x0004_0000n,
      READ_IMPLIES_EXEC: 0x0040_0000n,
      LINUX32: 8n,
    };
    expect(decide(inspected.personality, 0n)).toBe("allowed");
    expect(decide(inspected.personality, 0xffff_ffffn)).toBe("allowed");
    expect(decide(inspected.personality, 0xffff_ffff_ffff_ffffn)).toBe("allowed");
    for (const persona of Object.values(others)) {
      expect(decide(inspected.personality, persona)).toBe("EPERM");
    }
  });

  test.each(["socket", "socketpair"] as const)("knows four families for %s", (call) => {
    const passing = Array.from({ length: lastFamily }, (_, family) => BigInt(family)).filter(
      (family) => decide(inspected[call], family) === "allowed",
    );
    expect(passing).toEqual(Object.values(allowedFamilies));
    const others = { AF_PACKET: 17n, AF_BLUETOOTH: 31n, AF_ALG: 38n, AF_VSOCK: 40n, AF_XDP: 44n };
    for (const family of Object.values(others)) {
      expect(decide(inspected[call], family)).toBe("EAFNOSUPPORT");
      expect(decide(inspected[call], family | (1n << 32n))).toBe("EAFNOSUPPORT");
    }
  });

  test("knows one protocol of netlink", () => {
    const { AF_NETLINK, AF_UNIX } = allowedFamilies;
    const raw = 3n;
    expect(decide(inspected.socket, AF_NETLINK, raw, 0n)).toBe("allowed");
    for (const protocol of [1n, 4n, 9n, 12n, 16n, 0xffff_ffffn]) {
      expect(decide(inspected.socket, AF_NETLINK, raw, protocol)).toBe("EPROTONOSUPPORT");
      expect(decide(inspected.socket, AF_UNIX, raw, protocol)).toBe("allowed");
    }
    // The kernel reads 32 bits of it.
    expect(decide(inspected.socket, AF_NETLINK, raw, 1n << 32n)).toBe("allowed");
  });

  test("knows the protocols of the internet that programs name, and no others", () => {
    const protocols = [0n, 1n, 6n, 17n, 58n];
    const [IPPROTO_SCTP, IPPROTO_UDPLITE, IPPROTO_RAW, IPPROTO_MPTCP] = [132n, 136n, 255n, 262n];
    for (const family of [allowedFamilies.AF_INET, allowedFamilies.AF_INET6]) {
      const opened = (protocol: bigint) => decide(inspected.socket, family, 1n, protocol);
      for (const protocol of [IPPROTO_SCTP, IPPROTO_UDPLITE, IPPROTO_RAW, IPPROTO_MPTCP])
        expect(opened(protocol)).toBe("EPROTONOSUPPORT");
      const passing = Array.from({ length: 512 }, (_, number) => BigInt(number));
      expect(passing.filter((number) => opened(number) === "allowed")).toEqual(protocols);
      expect(opened(IPPROTO_MPTCP | (1n << 32n))).toBe("EPROTONOSUPPORT");
    }
  });

  test("knows these options of prctl, and no others", { tags: "promise-S18" }, () => {
    const all = Array.from({ length: 256 }, (_, number) => number);
    const named = [0x4155_5856, 0x53564d41, 0x59616d61];
    const passing = [...all, ...named].filter(
      (option) => decide(inspected.prctl, BigInt(option)) === "allowed",
    );
    expect(passing).toEqual(allowedProcessOptions);
    const [PR_SET_SECCOMP, PR_SCHED_CORE, PR_SET_MEMORY_MERGE, PR_FUTEX_HASH] = [
      22n,
      62n,
      67n,
      78n,
    ];
    for (const option of [PR_SET_SECCOMP, PR_SCHED_CORE, PR_SET_MEMORY_MERGE, PR_FUTEX_HASH]) {
      expect(decide(inspected.prctl, option, 1n)).toBe("EINVAL");
      // The kernel takes an int.
      expect(decide(inspected.prctl, option | (1n << 32n), 1n)).toBe("EINVAL");
    }
  });

  test("lets nobody be other than dumpable", () => {
    const PR_SET_DUMPABLE = 4n;
    expect(decide(inspected.prctl, PR_SET_DUMPABLE, 1n)).toBe("allowed");
    for (const value of [0n, 2n])
      expect(decide(inspected.prctl, PR_SET_DUMPABLE, value)).toBe("EINVAL");
  });

  test("takes no program for the kernel to run, neither for calls nor for sockets", () => {
    const [strict, filter, available] = [0n, 1n, 2n];
    expect(decide(inspected.seccomp, filter)).toBe("EINVAL");
    for (const operation of [strict, available])
      expect(decide(inspected.seccomp, operation, filter)).toBe("allowed");
    const [SOL_SOCKET, SOL_IP, SOL_TCP] = [1n, 0n, 6n];
    const set = (level: bigint, option: bigint) => decide(inspected.setsockopt, 3n, level, option);
    for (const option of [26n, 50n, 51n, 52n]) {
      expect(set(SOL_SOCKET, option)).toBe("ENOPROTOOPT");
      expect(set(SOL_SOCKET | (1n << 32n), option | (1n << 32n))).toBe("ENOPROTOOPT");
      expect(set(SOL_IP, option)).toBe("allowed");
    }
    const TCP_ULP = 31n;
    expect(set(SOL_TCP, TCP_ULP)).toBe("ENOPROTOOPT");
    // SO_BSDCOMPAT, which does nothing.
    const [SO_REUSEADDR, SO_SNDBUF, SO_BSDCOMPAT] = [2n, 7n, 14n];
    for (const option of [SO_REUSEADDR, SO_SNDBUF, SO_BSDCOMPAT])
      expect(set(SOL_SOCKET, option)).toBe("allowed");
    const [TCP_NODELAY, TCP_CONGESTION] = [1n, 13n];
    for (const option of [TCP_NODELAY, TCP_CONGESTION])
      expect(set(SOL_TCP, option)).toBe("allowed");
  });

  test("maps nothing that a connection received", () => {
    const [SOL_TCP, TCP_INFO, TCP_ZEROCOPY_RECEIVE] = [6n, 11n, 35n];
    const asked = (option: bigint) => decide(inspected.getsockopt, 3n, SOL_TCP, option);
    expect(asked(TCP_ZEROCOPY_RECEIVE)).toBe("ENOPROTOOPT");
    expect(asked(TCP_INFO)).toBe("allowed");
    expect(decide(inspected.getsockopt, 3n, 1n, TCP_ZEROCOPY_RECEIVE)).toBe("allowed");
  });

  test.each(Object.entries(everydayCalls[arch]))("lets %s pass", (_, number) => {
    expect(decide(number)).toBe("allowed");
  });

  const named = new Set(
    [refusedCalls, unknownCalls, unfitCalls, inspectedCalls].flatMap((calls) =>
      Object.values<SyscallNumbers>(calls).flatMap((numbers) => numbers[arch] ?? []),
    ),
  );

  test("names each number once, and decides by few comparisons", () => {
    const tables = [refusedCalls, unknownCalls, unfitCalls, inspectedCalls];
    const numbers = tables.flatMap((calls) =>
      Object.values<SyscallNumbers>(calls).flatMap((each) => each[arch] ?? []),
    );
    expect(numbers).toHaveLength(named.size);
    for (let number = 0; number < 512; number++) {
      const steps = program.steps({ number, arch: auditArchs[arch], arguments: [] });
      expect(steps).toBeLessThan(25);
    }
  });

  propertyTest.prop([uint32, sixArguments])(
    "lets a call that it does not name pass, whatever its arguments",
    (anyNumber, args) => {
      const number = anyNumber % 1024;
      fc.pre(!named.has(number));
      expect(decide(number, ...args)).toBe("allowed");
    },
  );

  propertyTest.prop([fc.constantFrom(...named), sixArguments, sixArguments])(
    "looks at the halves of arguments that the kernel looks at, and no others",
    (number, args, others) => {
      const low = 0xffff_ffffn;
      const mixed = args.map((argument, index) => (argument & low) | (others[index]! & ~low));
      expect(decide(number, ...mixed)).toBe(decide(number, ...args));
    },
  );

  propertyTest.prop([fc.oneof(fc.constantFrom(...named), uint32), uint32, sixArguments])(
    "comes to an end that the kernel knows, for any call of any architecture",
    (number, calledArch, args) => {
      for (const seen of [calledArch, auditArchs[arch]]) {
        const value = program.run({ number, arch: seen, arguments: args });
        expect(Object.values(outcomes)).toContain(value);
      }
    },
  );

  const strangers = [auditArchI386, auditArchArm, 0, ...Object.values(auditArchs)];
  propertyTest.prop([
    fc.oneof(uint32, fc.constantFrom(...strangers)).filter((other) => other !== auditArchs[arch]),
    fc.oneof(fc.constantFrom(...Object.values(everydayCalls[arch])), uint32),
  ])("kills what calls by another architecture's numbers", (stranger, number) => {
    expect(outcomeOf(program.run({ number, arch: stranger, arguments: [] }))).toBe("killed");
  });
});

describe.each(["x64", "arm64"] as const)(
  "the strict filter for %s",
  { tags: ["promise-S5", "promise-S40"] },
  (arch) => {
    const compile = (options: FilterOptions) => new BpfProgram(seccompProgram(arch, options));
    const programs = {
      usual: compile({}),
      strict: compile({ systemCalls: "strict" }),
      adding: compile({ systemCalls: "strict", addsFilter: true }),
      template: compile({ systemCalls: "strict", use: "template" }),
    };
    const ask = (kind: keyof typeof programs, numbers: SyscallNumbers, ...args: number[]) => {
      const call = { number: numbers[arch]!, arch: auditArchs[arch], arguments: args.map(BigInt) };
      return outcomeOf(programs[kind].run(call));
    };
    const { socket, socketpair, seccomp } = inspectedCalls;

    test("has no socket of any family, and no call that reaches others by an address", () => {
      for (const kind of ["strict", "adding"] as const) {
        for (let family = 0; family < lastFamily; family++)
          expect(ask(kind, socket, family)).toBe("EPERM");
        for (const numbers of Object.values(networkCalls)) expect(ask(kind, numbers)).toBe("EPERM");
      }
    });

    test("has connected pairs of local sockets, and no others", () => {
      const [SOCK_NONBLOCK, SOCK_CLOEXEC, AF_UNIX] = [0x800, 0x8_0000, 1];
      const flags = [0, SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC];
      const passing = Array.from({ length: 16 }, (_, type) => type).filter((type) =>
        flags.every((flag) => ask("strict", socketpair, AF_UNIX, type | flag) === "allowed"),
      );
      const [SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET] = [1, 2, 5];
      expect(passing).toEqual([SOCK_STREAM, SOCK_SEQPACKET]);
      for (const flag of flags)
        expect(ask("strict", socketpair, AF_UNIX, SOCK_DGRAM | flag)).toBe("EPERM");
      for (let family = 2; family < lastFamily; family++)
        expect(ask("strict", socketpair, family, SOCK_STREAM)).toBe("EPERM");
    });

    test("passes a filter that a runner adds on all threads, and no other way to add one", () => {
      const [SET_MODE_FILTER, TSYNC, LOG, NEW_LISTENER] = [1, 1, 2, 8];
      expect(ask("adding", seccomp, SET_MODE_FILTER, TSYNC)).toBe("allowed");
      for (const flags of [0, LOG, NEW_LISTENER, TSYNC | LOG])
        expect(ask("adding", seccomp, SET_MODE_FILTER, flags)).toBe("EINVAL");
      for (const kind of ["usual", "strict", "template"] as const)
        expect(ask(kind, seccomp, SET_MODE_FILTER, TSYNC)).toBe("EINVAL");
      const PR_SET_SECCOMP = 22;
      expect(ask("adding", inspectedCalls.prctl, PR_SET_SECCOMP)).toBe("EINVAL");
    });

    test("lets children of a template connect to the worker, and never listen", () => {
      const { connect, bind, listen } = networkCalls;
      expect(ask("template", connect)).toBe("allowed");
      expect(ask("template", socket, Number(allowedFamilies.AF_UNIX))).toBe("allowed");
      for (const numbers of [bind, listen]) expect(ask("template", numbers)).toBe("EPERM");
    });

    test("decides all other calls as the usual one does", () => {
      const own = new Set(
        [socket, socketpair, ...Object.values(networkCalls)].map((numbers) => numbers[arch]),
      );
      for (let number = 0; number < 512; number++) {
        if (own.has(number)) continue;
        const call = { number, arch: auditArchs[arch], arguments: [] };
        expect(programs.strict.run(call)).toBe(programs.usual.run(call));
      }
    });
  },
);

test("the filter for x64 kills what calls by numbers of the x32 ABI", () => {
  const program = new BpfProgram(seccompProgram("x64"));
  const x32Bit = 0x4000_0000;
  const refused = Object.values(refusedCalls).map(({ x64 }) => x64!);
  for (const number of [...Object.values(everydayCalls.x64), ...refused, 512, 547]) {
    const call = { number: number + x32Bit, arch: auditArchs.x64, arguments: [] };
    expect(outcomeOf(program.run(call))).toBe("killed");
  }
});

describe("the calls of the filter", () => {
  test("are these, and one more or less is a decision", () => {
    expect(Object.keys(refusedCalls).toSorted().join(" ")).toMatchInlineSnapshot(
      `"acct add_key adjtimex bpf chroot clock_adjtime clock_settime delete_module fanotify_init fanotify_mark finit_module fsconfig fsmount fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie modify_ldt mount mount_setattr move_mount name_to_handle_at open_by_handle_at open_tree open_tree_attr perf_event_open pidfd_getfd pivot_root process_madvise process_mrelease process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot request_key sched_setaffinity setdomainname sethostname setns settimeofday swapoff swapon syslog umount2 unshare uselib userfaultfd"`,
    );
  });

  test("that there are not, for callers, are these", () => {
    expect(Object.keys(unknownCalls).toSorted().join(" ")).toMatchInlineSnapshot(
      `"clone3 get_mempolicy inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit mbind memfd_create memfd_secret migrate_pages move_pages msgget semget set_mempolicy set_mempolicy_home_node shmget"`,
    );
  });

  test("that do not fit are these, on every architecture", () => {
    expect(Object.keys(unfitCalls).join(" ")).toBe("vmsplice splice tee sendfile");
    const numbers = Object.values(unfitCalls).flatMap(({ x64, arm64 }) => [x64, arm64]);
    expect(numbers).not.toContain(undefined);
  });

  test("are refused on every architecture that has them", () => {
    const without = Object.entries({ ...refusedCalls, ...unknownCalls }).filter(
      ([, { arm64 }]) => arm64 === undefined,
    );
    expect(without.map(([name]) => name)).toEqual([
      ...["iopl", "ioperm", "modify_ldt", "uselib"],
      "inotify_init",
    ]);
  });

  const headers = {
    x64: "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    arm64: "/usr/include/asm-generic/unistd.h",
  };
  test.for(["x64", "arm64"] as const)(
    "have the numbers of the kernel's header for %s",
    (arch, context) => {
      const path = headers[arch];
      context.skip(!existsSync(path), `${path} is not there: install linux-libc-dev`);
      const header = numbersOf(path);
      const ours: Record<string, SyscallNumbers> = {
        ...refusedCalls,
        ...inspectedCalls,
        ...unknownCalls,
        ...unfitCalls,
        ...networkCalls,
      };
      const known = Object.entries(ours).flatMap(([name, numbers]) => {
        const number = numbers[arch];
        return number === undefined ? [] : [[name, number] as const];
      });
      const missing = known.filter(([name]) => !header.has(name)).map(([name]) => name);
      // Headers may be older than the filter.
      expect(newerCalls).toEqual(expect.arrayContaining(missing));
      for (const [name, number] of [...known, ...Object.entries(everydayCalls[arch])]) {
        if (!missing.includes(name)) expect([name, header.get(name)]).toEqual([name, number]);
      }
      for (const name of Object.keys(ours).filter((call) => ours[call]![arch] === undefined)) {
        expect([name, header.has(name)]).toEqual([name, false]);
      }
    },
  );
});

/** Calls since Linux 6.2, which the headers of a stable distribution may lack. */
const newerCalls = ["open_tree_attr"];

/** The calls that a header defines, by name. */
function numbersOf(path: string): ReadonlyMap<string, number> {
  const lines = readFileSync(path, "utf8").matchAll(/^#define __NR(?:3264)?_(\w+)\s+(\d+)$/gm);
  return new Map([...lines].map(([, name, number]) => [name!, Number(number)]));
}

describe("an architecture", () => {
  test.each(["x64", "arm64"])("%s has a filter", (arch) => {
    expect(isFilteredArch(arch)).toBe(true);
  });

  test.each(["ia32", "arm", "riscv64", "s390x", "ppc64", "toString"])("%s has none", (arch) => {
    expect(isFilteredArch(arch)).toBe(false);
  });
});

describe("the interpreter", () => {
  const back = [0x06, 0, 0, 0, 0, 0, 0, 0];
  test.each([
    ["nothing", [], /no program/],
    ["half an instruction", back.slice(4), /no program/],
    ["an unknown instruction", [0x16, 0, 0, 0, 0, 0, 0, 0, ...back], /unknown instruction 22 at 0/],
    ["a jump out of the program", [0x15, 0, 1, 0, 0, 0, 0, 0, ...back], /jump out/],
    ["a load behind the data", [0x20, 0, 0, 0, 64, 0, 0, 0, ...back], /load from 64/],
    ["a load across words", [0x20, 0, 0, 0, 2, 0, 0, 0, ...back], /load from 2/],
    ["no return at the end", [...back, 0x20, 0, 0, 0, 0, 0, 0, 0], /no return/],
  ])("refuses %s", (_, bytes, message) => {
    expect(() => new BpfProgram(Uint8Array.from(bytes))).toThrow(message);
  });

  test("takes the branch that holds", () => {
    // Is argument 0 at least 7? Then 1, else 2.
    const program = new BpfProgram(
      Uint8Array.from([
        ...[0x20, 0, 0, 0, 16, 0, 0, 0],
        ...[0x35, 0, 0, 1, 7, 0, 0, 0],
        ...[0x06, 0, 0, 0, 1, 0, 0, 0],
        ...[0x06, 0, 0, 0, 2, 0, 0, 0],
      ]),
    );
    const call = (argument: bigint) => program.run({ number: 0, arch: 0, arguments: [argument] });
    expect([6n, 7n, 0xffff_ffffn, 1n << 32n].map(call)).toEqual([2, 1, 1, 2]);
  });
});
