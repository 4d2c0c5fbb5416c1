/**
 * Classic BPF for seccomp(2): instructions, the few shapes that the filter is made of, and their
 * bytes.
 */

/** One instruction: struct sock_filter of linux/filter.h. */
export interface Instruction {
  readonly code: number;
  /** Instructions to skip when the comparison holds, and when it does not. */
  readonly ifTrue: number;
  readonly ifFalse: number;
  readonly operand: number;
}

const instructionBytes = 8;
/** Instructions that a comparison can skip. */
const maxSkipped = 255;

/** Opcodes of linux/bpf_common.h: class, size or operation, and source. */
const opcodes = {
  /** Load 32 bits of struct seccomp_data at an offset. */
  load: 0x20,
  jump: 0x05,
  jumpIfEqual: 0x15,
  jumpIfGreaterOrEqual: 0x35,
  jumpIfAnyBit: 0x45,
  return: 0x06,
} as const;

/**
 * Offsets in struct seccomp_data. The low half of an argument comes first on both architectures.
 */
export const offsets = { number: 0, arch: 4, argument: (index: number) => 16 + 8 * index } as const;

/** Numbers that a search goes through one by one. */
const mostInLeaf = 3;

/**
 * What becomes of the calls of one number. A block must not fall through: the number is loaded no
 * longer.
 */
export interface Rule {
  readonly number: number;
  readonly block: readonly Instruction[];
}

/** Loads 32 bits at one of {@link offsets}. */
export function load(operand: number): Instruction {
  return { code: opcodes.load, ifTrue: 0, ifFalse: 0, operand };
}

/** Ends the program with an answer to the kernel. */
export function giveBack(operand: number): Instruction {
  return { code: opcodes.return, ifTrue: 0, ifFalse: 0, operand };
}

/** Runs `block` when the loaded value is `operand`, else goes on behind it. */
export function onEqual(operand: number, block: readonly Instruction[]): readonly Instruction[] {
  return [{ code: opcodes.jumpIfEqual, ifTrue: 0, ifFalse: block.length, operand }, ...block];
}

/** Runs `block` when the loaded value is another one, else goes on behind it. */
export function unlessEqual(
  operand: number,
  block: readonly Instruction[],
): readonly Instruction[] {
  return [{ code: opcodes.jumpIfEqual, ifTrue: block.length, ifFalse: 0, operand }, ...block];
}

/** Goes on to `block` when the loaded value has any of `bits`, else skips it. */
export function onAnyBit(bits: number, block: readonly Instruction[]): readonly Instruction[] {
  return [
    { code: opcodes.jumpIfAnyBit, ifTrue: 0, ifFalse: block.length, operand: bits },
    ...block,
  ];
}

/** Runs `block` when the loaded value is at least `operand`, else goes on behind it. */
export function onAtLeast(operand: number, block: readonly Instruction[]): readonly Instruction[] {
  return [
    { code: opcodes.jumpIfGreaterOrEqual, ifTrue: 0, ifFalse: block.length, operand },
    ...block,
  ];
}

/**
 * Finds the rule of the loaded number by halves. The kernel runs a filter for every number there is
 * when the filter is put on, so the number of comparisons is a part of what a sandbox costs.
 *
 * @param rules in the order of their numbers
 * @param otherwise for numbers without a rule; it must not fall through either
 */
export function search(
  rules: readonly Rule[],
  otherwise: readonly Instruction[],
): readonly Instruction[] {
  const half = rules.length >> 1;
  const middle = rules[half];
  if (middle === undefined || rules.length <= mostInLeaf)
    return [...rules.flatMap(({ number, block }) => onEqual(number, block)), ...otherwise];
  return [
    ...onLess(middle.number, search(rules.slice(0, half), otherwise)),
    ...search(rules.slice(half), otherwise),
  ];
}

function onLess(operand: number, block: readonly Instruction[]): readonly Instruction[] {
  const code = opcodes.jumpIfGreaterOrEqual;
  const { length } = block;
  if (length <= maxSkipped) return [{ code, ifTrue: length, ifFalse: 0, operand }, ...block];
  const skip = { code: opcodes.jump, ifTrue: 0, ifFalse: 0, operand: length };
  return [{ code, ifTrue: 0, ifFalse: 1, operand }, skip, ...block];
}

/**
 * The bytes of struct sock_filter, little-endian as both architectures are. Throws for a jump that
 * is too long for it.
 */
export function encode(program: readonly Instruction[]): Uint8Array {
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
