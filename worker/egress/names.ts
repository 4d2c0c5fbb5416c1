/**
 * The addresses that names have inside one sandbox, so that a connection leads to the name.
 */

/** Names of one sandbox. Further ones are not answered. */
export const maxNames = 4_096;

/** 127.64.0.0/10: all of 127.0.0.0/8 is local, and nothing else uses this part. */
const firstAddress = 0x7f_40_00_01;

/** Both directions. An address keeps its name as long as the sandbox lives. */
export class SandboxNames {
  readonly #addresses = new Map<string, string>();
  readonly #names = new Map<string, string>();

  /** The address of a name, given now if it has none; undefined when there are too many names. */
  addressOf(name: string): string | undefined {
    const known = this.#addresses.get(name);
    if (known !== undefined) return known;
    if (this.#addresses.size >= maxNames) return undefined;
    const address = dotted(firstAddress + this.#addresses.size);
    this.#addresses.set(name, address);
    this.#names.set(address, name);
    return address;
  }

  /** Undefined for an address that no name has. */
  nameOf(address: string): string | undefined {
    return this.#names.get(address);
  }
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join(".");
}
