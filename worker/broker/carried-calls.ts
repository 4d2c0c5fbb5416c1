/**
 * Calls that go on here although the connections that they came through are gone.
 */
import type { CarriedWork, Delivery, Places } from "./broker.ts";

/**
 * Follows deliveries to their settlement, across the loss of connections. What of a lost connection was not settled takes places
 * of the next one, or that would be sent work for slots which are taken. There is always a place for one call more: by it these
 * calls come back, if nobody else has got them, since brokers hand out first what comes back to them. Who finds that such a call
 * runs here settles the delivery that was lost, and so makes room for the next.
 */
export class CarriedCalls implements CarriedWork {
  readonly #redelivers: boolean;
  /** Counts connections; deliveries of former ones are carried. */
  #connection = 0;
  #unsettled = 0;
  #carried = 0;
  /** Of the connection of the moment. */
  #places: Places | undefined;
  #taken = 0;

  /** @param redelivers whether the broker hands out again what a lost connection leaves */
  constructor(redelivers: boolean) {
    this.#redelivers = redelivers;
  }

  /** The deliveries of the connection of the moment, followed. Ends with them. */
  async *follow(deliveries: AsyncIterable<Delivery>): AsyncGenerator<Delivery, void> {
    const connection = this.#connection;
    for await (const delivery of deliveries) {
      if (connection === this.#connection) this.#unsettled++;
      else this.#carried++;
      yield this.#followed(delivery, connection);
    }
  }

  /** From now on what was not settled is carried, and takes no places before it is given some. */
  connectionLost(): void {
    this.#connection++;
    this.#carried += this.#unsettled;
    this.#unsettled = 0;
    this.#places = undefined;
    this.#taken = 0;
  }

  takePlaces(places: Places): void {
    this.#taken = 0;
    this.#places = places;
    for (; this.#taken < this.#needed(places); this.#taken++) places.add();
  }

  #needed({ places }: Places): number {
    return Math.max(0, Math.min(this.#carried, places) - 1);
  }

  #followed(delivery: Delivery, connection: number): Delivery {
    let isSettled = false;
    const isLost = (): boolean => this.#redelivers && connection !== this.#connection;
    return {
      ...delivery,
      get isLost() {
        return isLost();
      },
      settle: async (outcome) => {
        if (!isSettled) this.#settled(connection);
        isSettled = true;
        await delivery.settle(outcome);
      },
    };
  }

  #settled(connection: number): void {
    if (connection === this.#connection) {
      this.#unsettled--;
      return;
    }
    this.#carried--;
    if (this.#places === undefined || this.#taken <= this.#needed(this.#places)) return;
    this.#taken--;
    this.#places.remove();
  }
}
