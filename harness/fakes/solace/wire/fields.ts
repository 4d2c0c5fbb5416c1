/**
 * Numbered values, of which headers and bodies of every SMF message consist; all numbers are
 * big-endian.
 */

/** What came cannot be read as what it claims to be; whoever sent it is cut off. */
export class MalformedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MalformedError";
  }
}

/** One value with the number that says what it is. */
export interface Field {
  readonly type: number;
  readonly value: Buffer;
}

/** Fields in the order in which they came; a type may come more than once. */
export class Fields implements Iterable<Field> {
  readonly #list: readonly Field[];

  constructor(list: readonly Field[]) {
    this.#list = list;
  }

  [Symbol.iterator](): Iterator<Field> {
    return this.#list[Symbol.iterator]();
  }

  has(type: number): boolean {
    return this.#list.some((field) => field.type === type);
  }

  /** The first value of this type. */
  bytes(type: number): Buffer | undefined {
    return this.#list.find((field) => field.type === type)?.value;
  }

  /** Every value of this type. */
  all(type: number): readonly Buffer[] {
    return this.#list.filter((field) => field.type === type).map(({ value }) => value);
  }

  /** The first value of this type as a number of at most `width` bytes. Throws MalformedError. */
  number(type: number, width: Width): number | undefined {
    const value = this.bytes(type);
    if (value && value.length > width) {
      throw new MalformedError(`a number of ${value.length} bytes where ${width} are known`);
    }
    return value && readNumber(value);
  }

  /** The first value of this type as text. */
  text(type: number): string | undefined {
    const value = this.bytes(type);
    return value && readText(value);
  }
}

/** Bytes of a number on the wire. */
export type Width = 1 | 2 | 3 | 4 | 8;

export function numberField(type: number, value: number, width: Width): Field {
  return { type, value: numberBytes(value, width) };
}

/** Text with the NUL that ends it. */
export function textField(type: number, text: string): Field {
  return { type, value: Buffer.from(`${text}\0`) };
}

export function numberBytes(value: number, width: Width): Buffer {
  const bytes = Buffer.alloc(width);
  if (width === 8) bytes.writeBigUInt64BE(BigInt(value));
  else bytes.writeUIntBE(value, 0, width);
  return bytes;
}

/**
 * A number of up to 8 bytes. Throws MalformedError when it is none, or one that JavaScript cannot
 * count to.
 */
export function readNumber(bytes: Buffer): number {
  if (bytes.length < 1 || bytes.length > 8) {
    throw new MalformedError(`a number of ${bytes.length} bytes`);
  }
  const value = Number(BigInt(`0x${bytes.toString("hex")}`));
  if (!Number.isSafeInteger(value)) throw new MalformedError(`a number as large as ${value}`);
  return value;
}

/** Text up to its NUL, or to its end. */
export function readText(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString("utf8", 0, end === -1 ? bytes.length : end);
}

/** The bytes from `start` to `end`. Throws MalformedError when they are not all there. */
export function slice(bytes: Buffer, start: number, end: number): Buffer {
  if (start > end || end > bytes.length) {
    throw new MalformedError(`bytes ${start} to ${end} of ${bytes.length}`);
  }
  return bytes.subarray(start, end);
}

/**
 * A field whose first byte holds its type in the bits of `typeMask`, and the place after it. Throws
 * MalformedError.
 */
export function readShortField(
  bytes: Buffer,
  at: number,
  typeMask: number,
): { readonly field: Field; readonly next: number } {
  const [head = 0, shortLength = 0] = slice(bytes, at, at + 2);
  const isLong = shortLength === 0;
  const length = isLong ? readNumber(slice(bytes, at + 2, at + 6)) : shortLength;
  const next = at + length;
  return {
    field: { type: head & typeMask, value: slice(bytes, at + (isLong ? 6 : 2), next) },
    next,
  };
}

/** The opposite of `readShortField`: one byte of length where that is enough, else five. */
export function encodeShortField({ type, value }: Field): Buffer {
  const short = value.length + 2;
  return short <= 0xff
    ? Buffer.concat([Buffer.of(type, short), value])
    : Buffer.concat([Buffer.of(type, 0), numberBytes(value.length + 6, 4), value]);
}

/** The bit above it says what to do with a type that one does not know. */
const longTypeMask = 0x7f;

/**
 * Fields with four bytes of length each, as login speaks of clients and of what a broker can do.
 * Throws MalformedError.
 */
export function readLongFields(bytes: Buffer): Fields {
  const fields: Field[] = [];
  for (let at = 0; at < bytes.length;) {
    const [type = 0] = slice(bytes, at, at + 1);
    const next = at + readNumber(slice(bytes, at + 1, at + 5));
    fields.push({ type: type & longTypeMask, value: slice(bytes, at + 5, next) });
    at = next;
  }
  return new Fields(fields);
}

/** The opposite of `readLongFields`. */
export function encodeLongFields(fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.flatMap(({ type, value }) => [Buffer.of(type), numberBytes(value.length + 5, 4), value]),
  );
}
