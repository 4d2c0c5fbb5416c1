/**
 * Lets calls onto the channel in their order, a number of them at a time: the worker reads no
 * `cancel` behind a call that waits there for others.
 */
export class CallQueue {
  #maxConcurrentCalls;
  /** @type {Set<string>} ids */
  #running = new Set();
  /** @type {Map<string, () => void>} by id, the longest first */
  #waiting = new Map();

  /** @param {number} maxConcurrentCalls */
  constructor(maxConcurrentCalls) {
    this.#maxConcurrentCalls = maxConcurrentCalls;
  }

  /**
   * Sends a call, now or after the answers to others.
   *
   * @param {string} id
   * @param {() => void} send
   */
  enter(id, send) {
    if (this.#running.size >= this.#maxConcurrentCalls) {
      this.#waiting.set(id, send);
      return;
    }
    this.#running.add(id);
    send();
  }

  /**
   * Sends the next call after the answer to a request, which may have been cancelled.
   *
   * @param {string} id
   */
  answered(id) {
    if (!this.#running.delete(id)) return;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next[0]);
    this.enter(...next);
  }

  /**
   * Drops a call that waits. False for a request that has been sent.
   *
   * @param {string} id
   */
  withdraw(id) {
    return this.#waiting.delete(id);
  }
}
