/**
 * CRC32C, as the API writes it: base64 of four octets. The SDK's goes byte by byte and, by the mood
 * of the compiler, takes 2 to 40 milliseconds for a megabyte; this one takes 1.6 with eight tables.
 */

/** Castagnoli's polynomial, reversed. */
const polynomial = 0x82f63b78;

/** Octets of a step, each with a table of its own ("slicing by 8"). */
const stepBytes = 8;

/** By octet: what it makes of the checksum when `index` more octets of the step follow. */
const tables = createTables();

/** The checksum of chunks, in their order. */
export class Checksum {
  #crc = 0;

  update(chunk: Uint8Array): void {
    const { buffer, byteOffset, byteLength } = chunk;
    const view = new DataView(buffer, byteOffset, byteLength);
    const steps = byteLength - (byteLength % stepBytes);
    const [t0, t1, t2, t3, t4, t5, t6, t7] = tables;
    let crc = ~this.#crc;
    for (let at = 0; at < steps; at += stepBytes) {
      const low = crc ^ view.getInt32(at, true);
      const high = view.getInt32(at + 4, true);
      crc =
        look(t7, low) ^
        look(t6, low >>> 8) ^
        look(t5, low >>> 16) ^
        look(t4, low >>> 24) ^
        look(t3, high) ^
        look(t2, high >>> 8) ^
        look(t1, high >>> 16) ^
        look(t0, high >>> 24);
    }
    for (let at = steps; at < byteLength; at++)
      crc = (crc >>> 8) ^ look(t0, crc ^ view.getUint8(at));
    this.#crc = ~crc;
  }

  /** That of all chunks until now. */
  get value(): string {
    const octets = Buffer.alloc(4);
    octets.writeInt32BE(this.#crc);
    return octets.toString("base64");
  }
}

type Table = Int32Array;

function look(table: Table, octet: number): number {
  return table[octet & 0xff] ?? 0;
}

function createTables(): readonly [Table, Table, Table, Table, Table, Table, Table, Table] {
  const first = new Int32Array(256).map((_, octet) => {
    let crc = octet;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
    return crc;
  });
  const after = (table: Table): Table => table.map((crc) => (crc >>> 8) ^ look(first, crc));
  const second = after(first);
  const third = after(second);
  const fourth = after(third);
  const fifth = after(fourth);
  const sixth = after(fifth);
  const seventh = after(sixth);
  return [first, second, third, fourth, fifth, sixth, seventh, after(seventh)];
}
