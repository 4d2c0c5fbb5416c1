/**
 * Calls that go on although their connection is gone: what places they take of the next one.
 */
import { describe, expect, test } from "vitest";
import type { Delivery, Places } from "../../../worker/broker/broker.ts";
import { CarriedCalls } from "../../../worker/broker/carried-calls.ts";

/** Counts what is taken. */
class Counted implements Places {
  readonly places: number;
  taken = 0;

  constructor(places: number) {
    this.places = places;
  }

  add(): void {
    this.taken++;
  }

  remove(): void {
    this.taken--;
  }
}

/** A connection that hands out so many calls, and does not end. */
async function* calls(count: number, outcomes: string[] = []): AsyncGenerator<Delivery, void> {
  for (let n = 0; n < count; n++) {
    yield {
      topic: "tool/echo",
      payload: Buffer.from(`${n}`),
      redelivered: false,
      deliveryCount: 1,
      maxDeliveries: undefined,
      properties: {},
      settle: (outcome) => Promise.resolve(void outcomes.push(`${n} ${outcome}`)),
    };
  }
  await new Promise(() => undefined);
}

/** What the connection of the moment hands out next. */
async function pulled(carried: CarriedCalls, count: number): Promise<readonly Delivery[]> {
  const followed = carried.follow(calls(count));
  const deliveries: Delivery[] = [];
  while (deliveries.length < count) deliveries.push((await followed.next()).value as Delivery);
  return deliveries;
}

describe("calls of a lost connection", () => {
  test("take places until they are settled, and leave room for one more", async () => {
    const carried = new CarriedCalls(true);
    const deliveries = await pulled(carried, 4);
    carried.connectionLost();
    const places = new Counted(10);
    carried.takePlaces(places);
    const taken = [places.taken];
    for (const delivery of deliveries) {
      await delivery.settle("accepted");
      await delivery.settle("failed");
      taken.push(places.taken);
    }
    expect(taken).toEqual([3, 2, 1, 0, 0]);
  });

  test("that are as many as the places, or more, make room for each that comes again", async () => {
    const carried = new CarriedCalls(true);
    const deliveries = await pulled(carried, 5);
    carried.connectionLost();
    const places = new Counted(3);
    carried.takePlaces(places);
    const taken = [places.taken];
    for (const delivery of deliveries) {
      await delivery.settle("accepted");
      taken.push(places.taken);
    }
    expect(taken).toEqual([2, 2, 2, 1, 0, 0]);
  });

  test("take places of the last connection alone", async () => {
    const carried = new CarriedCalls(true);
    const [first, second] = await pulled(carried, 3);
    carried.connectionLost();
    const [failed, former, last] = [new Counted(10), new Counted(10), new Counted(10)];
    carried.takePlaces(failed);
    carried.takePlaces(former);
    await first?.settle("accepted");
    carried.connectionLost();
    carried.takePlaces(last);
    await second?.settle("accepted");
    expect([failed.taken, former.taken, last.taken]).toEqual([2, 1, 0]);
  });

  test("that were settled before take none, and nor do those of the next connection", async () => {
    const carried = new CarriedCalls(true);
    const [settled, ...lost] = await pulled(carried, 3);
    await settled?.settle("accepted");
    carried.connectionLost();
    const places = new Counted(10);
    carried.takePlaces(places);
    const [next] = await pulled(carried, 1);
    expect(places.taken).toBe(1);
    await next?.settle("accepted");
    expect(places.taken).toBe(1);
    await lost[0]?.settle("accepted");
    expect(places.taken).toBe(0);
  });

  test("that are handed out when it is gone already are counted with them", async () => {
    const carried = new CarriedCalls(true);
    const followed = carried.follow(calls(3));
    await followed.next();
    carried.connectionLost();
    await followed.next();
    await followed.next();
    const places = new Counted(10);
    carried.takePlaces(places);
    expect(places.taken).toBe(2);
  });

  test("say that they are lost from then on", async () => {
    const carried = new CarriedCalls(true);
    const [former] = await pulled(carried, 1);
    expect(former?.isLost).toBe(false);
    carried.connectionLost();
    const [next] = await pulled(carried, 1);
    expect([former?.isLost, next?.isLost]).toEqual([true, false]);
  });

  test("are not lost where nobody hands them out again", async () => {
    const carried = new CarriedCalls(false);
    const [former] = await pulled(carried, 1);
    carried.connectionLost();
    expect(former?.isLost).toBe(false);
  });

  test("are settled where they came from", async () => {
    const outcomes: string[] = [];
    const carried = new CarriedCalls(true);
    const { value } = await carried.follow(calls(1, outcomes)).next();
    await (value as Delivery).settle("failed");
    expect(outcomes).toEqual(["0 failed"]);
  });
});
