/**
 * Random numbers of the children of a template: each child is a copy of it, and would draw the same
 * ones.
 */
import { Contexts } from "./contexts.js";
import { separateResolver } from "./resolvers.js";
import { seedBy, standIn } from "./seeding.js";

const crypto = process.getBuiltinModule("node:crypto");
const { syncBuiltinESMExports } = process.getBuiltinModule("node:module");
const { nextTick } = process;
const { defineProperty, getPrototypeOf } = Object;
const { apply, get } = Reflect;
const { isSafeInteger } = Number;
const { min, random } = Math;
const { randomBytes, randomFillSync, randomInt, randomUUID } = crypto;
const webCrypto = getPrototypeOf(crypto.webcrypto);

/** Random bytes that an import may draw at a time: an id or a key is shorter, a stock longer. */
const maxDrawnBytes = 64;
/** And in all. */
const maxAllDrawnBytes = 256;
/** Other names of `crypto.randomBytes`. */
const randomBytesAliases = ["pseudoRandomBytes", "prng", "rng"];
/** What `randomInt` draws from. */
const maxRange = 2 ** 48;
const intBytes = 6;

/** @import { Draw } from "./seeding.js" */

/**
 * Stands in for the generators while the module is imported. Node and V8 draw ahead, and children
 * would share what is left. The addon seeds OpenSSL anew.
 */
export class Generators {
  #isImporting = true;
  #drawnBytes = 0;
  #allDrawnBytes = 0;
  /**
   * Of the stand-in for `Math.random`, which children keep: sfc32. V8 takes a seed of 31 bits, by
   * which two of some ten thousand children draw alike.
   */
  #state = new Uint32Array(4);
  /** @type {(() => void)[]} */
  #releases = [];
  #contexts = new Contexts();

  constructor() {
    randomFillSync(this.#state);
    this.#standIn(Math, "random", () => this.#random());
    const uuid = () => randomUUID({ disableEntropyCache: true });
    this.#standIn(crypto, "randomUUID", this.#orOwn(randomUUID, uuid));
    this.#standIn(webCrypto, "randomUUID", this.#orOwn(webCrypto.randomUUID, uuid));
    this.#standIn(crypto, "randomInt", this.#orOwn(randomInt, uncachedInt));
    for (const name of ["randomBytes", ...randomBytesAliases])
      this.#measure(crypto, name, ([size]) => size);
    this.#measure(crypto, "randomFill", sizeOfFill);
    this.#measure(crypto, "randomFillSync", sizeOfFill);
    this.#measure(webCrypto, "getRandomValues", sizeOfFill);
    syncBuiltinESMExports();
  }

  /**
   * To be called after the import. Says why children would share random numbers, where they would.
   *
   * @returns {string | undefined}
   */
  release() {
    this.#isImporting = false;
    for (const release of this.#releases) release();
    syncBuiltinESMExports();
    const reason = this.#contexts.release() ?? this.#stock() ?? ofSqlite() ?? separateResolver();
    return reason && `${reason}, so children would draw the same random numbers`;
  }

  /** To be called in each child before anything of the tool runs. */
  seed() {
    randomFillSync(this.#state);
    seedBy(random);
  }

  #stock() {
    if (this.#drawnBytes > maxDrawnBytes) {
      return `it has drawn ${this.#drawnBytes} random bytes at a time`;
    }
    if (this.#allDrawnBytes <= maxAllDrawnBytes) return undefined;
    return `it has drawn ${this.#allDrawnBytes} random bytes`;
  }

  /**
   * What the import draws by one function, and children by another.
   *
   * @param {Draw} own
   * @param {Draw} whileImporting
   * @returns {Draw}
   */
  #orOwn(own, whileImporting) {
    const isImporting = () => this.#isImporting;
    return function (...given) {
      return apply(isImporting() ? whileImporting : own, this, given);
    };
  }

  /**
   * Notes how much the import draws at a time by a function.
   *
   * @param {object} owner
   * @param {string} name
   * @param {(given: any[]) => number} sizeOf
   */
  #measure(owner, name, sizeOf) {
    const own = get(owner, name);
    if (typeof own !== "function") return;
    const note = this.#orOwn(
      () => undefined,
      (...given) => {
        const size = sizeOf(given) || 0;
        this.#drawnBytes = Math.max(this.#drawnBytes, size);
        this.#allDrawnBytes += size;
      },
    );
    this.#standIn(owner, name, function (...given) {
      note(...given);
      return apply(own, this, given);
    });
  }

  /**
   * Puts a function in the place of another until `release`.
   *
   * @param {object} owner
   * @param {string} name
   * @param {Draw} made
   */
  #standIn(owner, name, made) {
    const own = standIn(owner, name, made);
    this.#releases.push(() => {
      if (get(owner, name) === made && own !== random) defineProperty(owner, name, { value: own });
    });
  }

  #random() {
    // 53 bits, as V8 has them.
    return ((this.#next() >>> 5) * 2 ** 26 + (this.#next() >>> 6)) / 2 ** 53;
  }

  /** 32 bits of sfc32, by Chris Doty-Humphrey. */
  #next() {
    const state = this.#state;
    const { 0: a = 0, 1: b = 0, 2: c = 0, 3: count = 0 } = state;
    const sum = (a + b + count) >>> 0;
    state[0] = b ^ (b >>> 9);
    state[1] = c + (c << 3);
    state[2] = ((c << 21) | (c >>> 11)) + sum;
    state[3] = count + 1;
    return sum;
  }
}

/**
 * As `crypto.randomInt`, which draws for a thousand numbers at a time.
 *
 * @param {any[]} given
 */
function uncachedInt(...given) {
  const [first, second, third] = given;
  const [least, end, callback] =
    second === undefined || typeof second === "function"
      ? [0, first, second]
      : [first, second, third];
  const range = end - least;
  const isValid = isSafeInteger(least) && isSafeInteger(end) && range > 0 && range < maxRange;
  // It says what is wrong with it, and draws nothing.
  if (!isValid) return apply(randomInt, crypto, given);
  let drawn;
  do drawn = randomBytes(intBytes).readUIntLE(0, intBytes);
  while (drawn >= maxRange - (maxRange % range));
  const value = least + (drawn % range);
  if (callback === undefined) return value;
  return nextTick(callback, undefined, value);
}

/**
 * Bytes that a call of `randomFill(view, offset, size)` fills.
 *
 * @param {any[]} given
 * @returns {number}
 */
function sizeOfFill([view, , size]) {
  const whole = view?.byteLength ?? 0;
  return typeof size === "number" ? min(whole, size * (view?.BYTES_PER_ELEMENT ?? 1)) : whole;
}

/** Its generator is seeded at the first draw, and nothing of it can be reached. */
function ofSqlite() {
  const { moduleLoadList } = /** @type {NodeJS.Process & { moduleLoadList: string[] }} */ (process);
  return moduleLoadList.includes("Internal Binding sqlite")
    ? "it has loaded node:sqlite"
    : undefined;
}
