/**
 * The engine: QuickJS as a wasm module, whose memory is given a bound in the module itself.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { RuntimeError } from "../api/errors.ts";
import { greatestMemoryBytes, leastMemoryBytes, maxEngines } from "./limits.ts";
import type { Engine } from "./messages.ts";

/** The types of Node have no wasm. */
declare const WebAssembly: { compile(bytes: Uint8Array): Promise<object> };

/** Bytes of a page of wasm memory. */
const pageBytes = 64 * 1024;
/** Magic number and version. */
const headBytes = 8;
const memorySection = 5;
/** Of a memory's limits: a maximum follows the initial size. */
const hasMaximum = 1;

/** Compiles engines, and keeps the last ones. */
export class Engines {
  readonly #binary: Uint8Array;
  /** By their memory, the longest unused first. */
  readonly #engines = new Map<number, Promise<Engine>>();

  constructor(binary: Uint8Array) {
    this.#binary = binary;
  }

  /** Loads the package. */
  static async load(): Promise<Engines> {
    const file = createRequire(import.meta.url).resolve("quickjs-wasi/quickjs.wasm");
    return new Engines(await readFile(file));
  }

  /** An engine whose instances have at most these bytes. Rejects with RuntimeError. */
  async of(memoryBytes: number): Promise<Engine> {
    if (memoryBytes < leastMemoryBytes) {
      const detail = `memory: an instance needs ${leastMemoryBytes} bytes`;
      throw new RuntimeError("RESOURCE_LIMIT", { detail, data: { limit: "memory" } });
    }
    const pages = Math.floor(Math.min(memoryBytes, greatestMemoryBytes) / pageBytes);
    const engine = this.#engines.get(pages) ?? this.#compile(pages);
    this.#engines.delete(pages);
    this.#engines.set(pages, engine);
    const [oldest] = this.#engines.keys();
    if (this.#engines.size > maxEngines && oldest !== undefined) this.#engines.delete(oldest);
    return engine;
  }

  async #compile(pages: number): Promise<Engine> {
    const module = await WebAssembly.compile(withMaximum(this.#binary, pages));
    return { module, memoryBytes: pages * pageBytes };
  }
}

/** The module with another limit of its one memory. */
function withMaximum(binary: Uint8Array, maxPages: number): Uint8Array {
  for (let at = headBytes; at < binary.length;) {
    const size = readNumber(binary, at + 1);
    if (binary[at] !== memorySection) {
      at = size.end + size.value;
      continue;
    }
    // The number of memories, the flags, the initial pages.
    const initial = readNumber(binary, readNumber(binary, size.end).end + 1);
    const content = [1, hasMaximum, ...numberBytes(initial.value), ...numberBytes(maxPages)];
    const section = [memorySection, ...numberBytes(content.length), ...content];
    const rest = binary.subarray(size.end + size.value);
    return Buffer.concat([binary.subarray(0, at), Uint8Array.from(section), rest]);
  }
  throw new Error("the engine has no memory of its own");
}

/** An unsigned LEB128 number. */
function readNumber(bytes: Uint8Array, start: number): { value: number; end: number } {
  let value = 0;
  for (let end = start, shift = 0; ; end++, shift += 7) {
    const byte = bytes[end] ?? 0;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return { value, end: end + 1 };
  }
}

function numberBytes(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...numberBytes(value >>> 7)];
}
