/**
 * Calls that go on here although the connections that they came through are gone.
 */
import type { CarriedWork, Delivery, Places } from "./broker.ts";

/**
 * Follows deliveries to their settlement, across the loss of connections. What of a lost connection was not settled takes places
 * of the next one, or that would be sent work for slots which are taken; all but one place. Through the last one come these
 * calls themselves, if nobody else has got them: brokers hand out first what comes back to them. Who finds that such a call runs
 * here settles its former delivery, and so gives its place to the next.
 */
export class CarriedCalls implements CarriedWork {
  /** Counts connections; deliveries of former ones are carried. */
  #connection = 0;
  #unsettled = 0;
  #carried = 0;
  /** Of the connection of the moment. */
  #places: Places | undefined;
  #taken = 0;

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
    this.#places = places;
    this.#taken = Math.max(0, Math.min(this.#carried, places.places - 1));
    for (let taken = 0; taken < this.#taken; taken++) places.add();
  }

  #followed(delivery: Delivery, connection: number): Delivery {
    let isSettled = false;
    return {
      ...delivery,
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
    if (this.#carried >= this.#taken) return;
    this.#taken--;
    this.#places?.remove();
  }
}
