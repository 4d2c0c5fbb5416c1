/**
 * Runs classic BPF programs as seccomp(2) does, for the few instructions that the sandbox's filter
 * is made of.
 */

/**
 * What the program looks at: struct seccomp_data of linux/seccomp.h, without the instruction
 * pointer.
 */
export interface SystemCall {
  readonly number: number;
  /** AUDIT_ARCH_… of linux/audit.h. */
  readonly arch: number;
  /** Up to six, 64 bits each. */
  readonly arguments: readonly bigint[];
}

interface Instruction {
  readonly code: number;
  readonly ifTrue: number;
  readonly ifFalse: number;
  readonly operand: number;
}

/** BPF_LD | BPF_W | BPF_ABS and so on, spelled from the parts that linux/bpf_common.h names. */
const codes = {
  load: 0x00 | 0x00 | 0x20,
  jump: 0x05 | 0x00,
  jumpIfEqual: 0x05 | 0x10 | 0x00,
  jumpIfGreaterOrEqual: 0x05 | 0x30 | 0x00,
  jumpIfAnyBit: 0x05 | 0x40 | 0x00,
  returnConstant: 0x06 | 0x00,
};

const instructionBytes = 8;
const seccompDataBytes = 64;
/** BPF_MAXINSNS */
export const maxInstructions = 4096;

/** A program that has been checked as the kernel checks it. */
export class BpfProgram {
  readonly #instructions: readonly Instruction[];

  /**
   * Throws for an instruction that is not known, a load outside struct seccomp_data or not of a
   * whole word, a jump out of the program, and a program that does not end in a return. Jumps go
   * forward only, so every program ends.
   */
  constructor(bytes: Uint8Array) {
    this.#instructions = decode(bytes);
    this.#instructions.forEach(check);
    if (this.#instructions.at(-1)?.code !== codes.returnConstant) {
      throw new Error("the last instruction is no return");
    }
  }

  get length(): number {
    return this.#instructions.length;
  }

  /** What the program returns for a call, as an unsigned number. */
  run(call: SystemCall): number {
    return this.#follow(call).result;
  }

  /** Instructions that it takes to come to that. */
  steps(call: SystemCall): number {
    return this.#follow(call).steps;
  }

  #follow(call: SystemCall): { readonly result: number; readonly steps: number } {
    const data = seccompData(call);
    let loaded = 0;
    for (let at = 0, steps = 1; ; at++, steps++) {
      const instruction = this.#instructions[at];
      if (instruction === undefined) throw new Error(`ran out of the program at ${at}`);
      const { code, operand, ifTrue, ifFalse } = instruction;
      if (code === codes.returnConstant) return { result: operand, steps };
      if (code === codes.load) loaded = data.getUint32(operand, true);
      else if (code === codes.jump) at += operand;
      else at += holds(code, loaded, operand) ? ifTrue : ifFalse;
    }
  }
}

function holds(code: number, loaded: number, operand: number): boolean {
  if (code === codes.jumpIfEqual) return loaded === operand;
  if (code === codes.jumpIfGreaterOrEqual) return loaded >= operand;
  return (loaded & operand) !== 0;
}

function decode(bytes: Uint8Array): readonly Instruction[] {
  if (bytes.length === 0 || bytes.length % instructionBytes !== 0) {
    throw new Error(`${bytes.length} bytes are no program`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / instructionBytes }, (_, index) => ({
    code: view.getUint16(index * instructionBytes, true),
    ifTrue: view.getUint8(index * instructionBytes + 2),
    ifFalse: view.getUint8(index * instructionBytes + 3),
    operand: view.getUint32(index * instructionBytes + 4, true),
  }));
}

function check(instruction: Instruction, at: number, all: readonly Instruction[]): void {
  const { code, ifTrue, ifFalse, operand } = instruction;
  if (!Object.values(codes).includes(code)) throw new Error(`unknown instruction ${code} at ${at}`);
  if (code === codes.load && (operand % 4 !== 0 || operand > seccompDataBytes - 4)) {
    throw new Error(`load from ${operand} at ${at}`);
  }
  const isJump = code !== codes.load && code !== codes.returnConstant;
  const skipped = code === codes.jump ? operand : Math.max(ifTrue, ifFalse);
  if (isJump && at + 1 + skipped >= all.length) {
    throw new Error(`jump out of the program at ${at}`);
  }
}

/** Little-endian, as both architectures are. */
function seccompData(call: SystemCall): DataView {
  const data = new DataView(new ArrayBuffer(seccompDataBytes));
  data.setUint32(0, call.number, true);
  data.setUint32(4, call.arch, true);
  call.arguments.forEach((argument, index) => {
    data.setBigUint64(16 + 8 * index, argument, true);
  });
  return data;
}
