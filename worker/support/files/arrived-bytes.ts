/**
 * Counts the bytes of content on its way against its announced size.
 */

/** Content has another size than announced. The message is public. */
export class WrongSizeError extends Error {}

/** The bytes of one content until now. */
export class ArrivedBytes {
  readonly #announced: number;
  readonly #failure: (reason: string) => Error;
  #bytes = 0;

  /** `failure` makes the errors of the methods; they are WrongSizeError by default. */
  constructor(announced: number, failure = (reason: string): Error => new WrongSizeError(reason)) {
    this.#announced = announced;
    this.#failure = failure;
  }

  /** Throws before a byte too many is passed on. */
  add({ byteLength }: Uint8Array): void {
    this.#bytes += byteLength;
    if (this.#bytes <= this.#announced) return;
    throw this.#failure(`more than the announced ${this.#announced} bytes arrived`);
  }

  /** Throws when bytes are missing. */
  end(): void {
    if (this.#bytes === this.#announced) return;
    throw this.#failure(`${this.#bytes} of the announced ${this.#announced} bytes arrived`);
  }
}
