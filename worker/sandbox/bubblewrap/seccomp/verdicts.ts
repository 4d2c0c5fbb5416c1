/**
 * What a filter decides: the kernel's actions, and blocks that decide by an argument.
 */
import {
  type Instruction,
  type Rule,
  giveBack,
  load,
  offsets,
  onAnyBit,
  onEqual,
  search,
} from "./bpf.ts";

/** What the kernel does with the call: linux/seccomp.h. */
export const actions = {
  allow: 0x7fff_0000,
  killProcess: 0x8000_0000,
  /** Fail with the error number in the low half. */
  fail: (errno: number) => 0x0005_0000 | errno,
} as const;

export const errnos = {
  EPERM: 1,
  ENOMEM: 12,
  EINVAL: 22,
  ENOSYS: 38,
  ENOPROTOOPT: 92,
  EPROTONOSUPPORT: 93,
  EAFNOSUPPORT: 97,
} as const;

/** Takes the block of a number, else gives an action back. */
export function decide(rules: readonly Rule[], otherwise: number): readonly Instruction[] {
  return search(
    rules.toSorted((a, b) => a.number - b.number),
    [giveBack(otherwise)],
  );
}

/** Fails the call when an argument is one of `values`, else lets it pass. */
export function failOn(
  index: number,
  values: readonly number[],
  errno: number,
): readonly Instruction[] {
  return [
    load(offsets.argument(index)),
    ...values.flatMap((value) => onEqual(value, [giveBack(actions.fail(errno))])),
    giveBack(actions.allow),
  ];
}

/** Fails the call when an argument has any of `bits`, else lets it pass. */
export function failOnAnyBit(index: number, bits: number, errno: number): readonly Instruction[] {
  return [
    load(offsets.argument(index)),
    ...onAnyBit(bits, [giveBack(actions.fail(errno))]),
    giveBack(actions.allow),
  ];
}

/**
 * Lets the call pass when an argument, the first one unless told, is one of `values`, else fails
 * it.
 */
export function allowOnly(
  values: readonly number[],
  errno: number,
  index = 0,
): readonly Instruction[] {
  return [
    load(offsets.argument(index)),
    ...values.flatMap((value) => onEqual(value, [giveBack(actions.allow)])),
    giveBack(actions.fail(errno)),
  ];
}
