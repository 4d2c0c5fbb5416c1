/**
 * The system-call filter of a sandbox: a classic BPF program for `bwrap --seccomp`. See seccomp(2).
 */
import {
  type FilteredArch,
  type SyscallNumbers,
  inspectedCalls,
  refusedCalls,
  unknownCalls,
} from "./syscalls.ts";

/** One instruction: struct sock_filter of linux/filter.h. */
interface Instruction {
  readonly code: number;
  /** Instructions to skip when the comparison holds, and when it does not. */
  readonly ifTrue: number;
  readonly ifFalse: number;
  readonly operand: number;
}

const instructionBytes = 8;

/** Opcodes of linux/bpf_common.h: class, size or operation, and source. */
const opcodes = {
  /** Load 32 bits of struct seccomp_data at an offset. */
  load: 0x20,
  jumpIfEqual: 0x15,
  jumpIfGreaterOrEqual: 0x35,
  jumpIfAnyBit: 0x45,
  return: 0x06,
} as const;

/** What the kernel does with the call: linux/seccomp.h. */
const actions = {
  allow: 0x7fff_0000,
  killProcess: 0x8000_0000,
  /** Fail with the error number in the low half. */
  fail: (errno: number) => 0x0005_0000 | errno,
} as const;

const errnos = { EPERM: 1, ENOSYS: 38, EPROTONOSUPPORT: 93, EAFNOSUPPORT: 97 } as const;

/** Offsets in struct seccomp_data. The low half of an argument comes first on both architectures. */
const offsets = { number: 0, arch: 4, argument: (index: number) => 16 + 8 * index } as const;

/** AUDIT_ARCH_… of linux/audit.h. */
const auditArchs: Readonly<Record<FilteredArch, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 };

/** Calls of the x32 ABI are x86-64 calls with this bit, and would pass every comparison of numbers. */
const x32Bit = 0x4000_0000;

/** Flags of clone(2) that make a namespace: mount, cgroup, uts, ipc, user, pid, net. */
const namespaceFlags = 0x7e02_0000;

/**
 * Requests of ioctl_tty(2) that put input into a terminal, reach the console, or have a terminal served by another driver,
 * which the kernel loads for that: those of old modems and buses, with a history.
 */
const terminalRequests = { TIOCSTI: 0x5412, TIOCLINUX: 0x541c, TIOCSETD: 0x5423 } as const;

/** The usual personality, and the question which it is. Others switch protections off. */
const harmlessPersonalities = [0, 0xffff_ffff];

/**
 * Socket families with a network: local, IPv4, IPv6, and netlink, which name service and interface lists need. Without a
 * network the same ones exist in a namespace of their own. Others, such as packet or vsock, are not all bound by it.
 */
const socketFamilies = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;

/** The protocol of netlink(7) that tells interfaces and addresses. The others lead into subsystems that no tool needs. */
const netlinkRoute = 0;

/** Whether there is a filter for an architecture. */
export function isFilteredArch(arch: string): arch is FilteredArch {
  return Object.hasOwn(auditArchs, arch);
}

/**
 * The filter for an architecture, as bytes of struct sock_filter. It kills on calls of another architecture, answers
 * calls that some kernels do not have with ENOSYS, refuses those that no tool needs with EPERM, and lets everything else
 * pass.
 */
export function seccompProgram(arch: FilteredArch): Uint8Array {
  return encode([
    load(offsets.arch),
    ...unlessEqual(auditArchs[arch], [giveBack(actions.killProcess)]),
    load(offsets.number),
    ...(arch === "x64" ? refuseX32() : []),
    ...failing(unknownCalls, arch, errnos.ENOSYS),
    ...inspect(arch, "clone", [
      load(offsets.argument(0)),
      { code: opcodes.jumpIfAnyBit, ifTrue: 0, ifFalse: 1, operand: namespaceFlags },
      giveBack(actions.fail(errnos.EPERM)),
      giveBack(actions.allow),
    ]),
    ...inspect(arch, "ioctl", [
      load(offsets.argument(1)),
      ...Object.values(terminalRequests).flatMap((request) =>
        onEqual(request, [giveBack(actions.fail(errnos.EPERM))]),
      ),
      giveBack(actions.allow),
    ]),
    ...inspect(arch, "personality", allowOnly(harmlessPersonalities, errnos.EPERM)),
    ...inspect(arch, "socket", [...oneNetlinkProtocol(), ...allowFamilies()]),
    ...inspect(arch, "socketpair", allowFamilies()),
    ...failing(refusedCalls, arch, errnos.EPERM),
    giveBack(actions.allow),
  ]);
}

function load(operand: number): Instruction {
  return { code: opcodes.load, ifTrue: 0, ifFalse: 0, operand };
}

function giveBack(operand: number): Instruction {
  return { code: opcodes.return, ifTrue: 0, ifFalse: 0, operand };
}

/** Runs `block` when the loaded value is `operand`, else goes on behind it. */
function onEqual(operand: number, block: readonly Instruction[]): readonly Instruction[] {
  return [{ code: opcodes.jumpIfEqual, ifTrue: 0, ifFalse: block.length, operand }, ...block];
}

function unlessEqual(operand: number, block: readonly Instruction[]): readonly Instruction[] {
  return [{ code: opcodes.jumpIfEqual, ifTrue: block.length, ifFalse: 0, operand }, ...block];
}

/** Runs `block` for a call; nothing for a call that the architecture does not have. */
function onCall(number: number | undefined, block: readonly Instruction[]): readonly Instruction[] {
  return number === undefined ? [] : onEqual(number, block);
}

/** Fails each of the calls, whatever its arguments. */
function failing(
  calls: Readonly<Record<string, SyscallNumbers>>,
  arch: FilteredArch,
  errno: number,
): readonly Instruction[] {
  return Object.values(calls).flatMap((numbers) =>
    onCall(numbers[arch], [giveBack(actions.fail(errno))]),
  );
}

/** A block that decides a call by its arguments. It must not fall through: the call's number is loaded no longer. */
function inspect(
  arch: FilteredArch,
  name: keyof typeof inspectedCalls,
  block: readonly Instruction[],
): readonly Instruction[] {
  return onCall(inspectedCalls[name][arch], block);
}

/** Lets the call pass when its first argument is one of `values`. */
function allowOnly(values: readonly number[], errno: number): readonly Instruction[] {
  return [
    load(offsets.argument(0)),
    ...values.flatMap((value) => onEqual(value, [giveBack(actions.allow)])),
    giveBack(actions.fail(errno)),
  ];
}

function allowFamilies(): readonly Instruction[] {
  return allowOnly(Object.values(socketFamilies), errnos.EAFNOSUPPORT);
}

/** Decides a socket of netlink by its protocol, and goes on behind with the other families. */
function oneNetlinkProtocol(): readonly Instruction[] {
  return [
    load(offsets.argument(0)),
    ...onEqual(socketFamilies.netlink, [
      load(offsets.argument(2)),
      ...onEqual(netlinkRoute, [giveBack(actions.allow)]),
      giveBack(actions.fail(errnos.EPROTONOSUPPORT)),
    ]),
  ];
}

function refuseX32(): readonly Instruction[] {
  return [
    { code: opcodes.jumpIfGreaterOrEqual, ifTrue: 0, ifFalse: 1, operand: x32Bit },
    giveBack(actions.killProcess),
  ];
}

/** Both architectures are little-endian. */
function encode(program: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(program.length * instructionBytes);
  program.forEach(({ code, ifTrue, ifFalse, operand }, index) => {
    const at = index * instructionBytes;
    bytes.writeUInt16LE(code, at);
    bytes.writeUInt8(ifTrue, at + 2);
    bytes.writeUInt8(ifFalse, at + 3);
    bytes.writeUInt32LE(operand, at + 4);
  });
  return bytes;
}
