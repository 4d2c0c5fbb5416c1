/**
 * The count of calls that a session holds over all its queues.
 */
import { describe, expect, test, vi } from "vitest";
import { type Place, Room } from "../../../worker/broker/room.ts";
import { patience } from "../../support/patience.ts";

const never = new AbortController().signal;

describe("a room", () => {
  test("gives its places away once, and those that are given back first come first served", async () => {
    const room = new Room(2);
    const first = await room.reserve(never);
    await room.reserve(never);
    expect(room.tryReserve()).toBeUndefined();
    const order: string[] = [];
    const waiting = ["a", "b"].map((name) =>
      room.reserve(never).then((place) => {
        order.push(name);
        return place;
      }),
    );
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    const given = (await waiting[0]) as Place;
    expect(order).toEqual(["a"]);
    given[Symbol.dispose]();
    await waiting[1];
    expect(order).toEqual(["a", "b"]);
  });

  test("counts a call and the place that was kept for it as two until the place is given back", () => {
    const room = new Room(2);
    const place = room.tryReserve();
    room.add();
    expect(room.isFull).toBe(false);
    expect(room.tryReserve()).toBeUndefined();
    place?.[Symbol.dispose]();
    expect(room.tryReserve()).toBeDefined();
  });

  test("takes calls beyond its places, and gives none away before there is one", async () => {
    const room = new Room(1);
    room.add();
    room.add();
    expect(room.isFull).toBe(true);
    const place = room.reserve(never);
    room.remove();
    expect(room.isFull).toBe(true);
    room.remove();
    expect(room.isFull).toBe(false);
    await place;
  });

  test("gives no place to who has stopped to wait", async () => {
    const room = new Room(1);
    room.add();
    const aborting = new AbortController();
    const reason = new Error("enough");
    const given = room.reserve(aborting.signal);
    aborting.abort(reason);
    await expect(given).rejects.toBe(reason);
    await expect(room.reserve(aborting.signal)).rejects.toBe(reason);
    room.remove();
    expect(room.tryReserve()).toBeDefined();
  });

  test("tells those who take from it that it is full and stays so, and that it is not any more", async () => {
    const room = new Room(1);
    const told: string[] = [];
    const taker = (name: string) => ({
      onCrowded: () => void told.push(`${name}: crowded`),
      onRoom: () => void told.push(`${name}: room`),
    });
    using _one = room.join(taker("one"));
    using _other = room.join(taker("other"));
    // The first learns that it is not alone any more.
    expect(told.splice(0)).toContain("one: room");
    room.add();
    room.remove();
    expect(told.splice(0)).toEqual(["one: room", "other: room"]);
    room.add();
    room.add();
    expect(room.isCrowded).toBe(false);
    await vi.waitFor(() => expect(told).toEqual(["one: crowded", "other: crowded"]), patience);
    room.remove();
    expect(room.isCrowded).toBe(true);
    expect(told).toHaveLength(2);
    room.remove();
    expect(room.isCrowded).toBe(false);
    expect(told.slice(2)).toEqual(["one: room", "other: room"]);
  });

  test("tells nobody who takes from it alone that it is full", async () => {
    const room = new Room(1);
    const told: string[] = [];
    using _one = room.join({ onCrowded: () => told.push("crowded"), onRoom: () => {} });
    const other = room.join({ onCrowded: () => told.push("left"), onRoom: () => {} });
    other[Symbol.dispose]();
    room.add();
    // Told after this one, which has begun to wait later.
    const later = new Room(1);
    const isTold = Promise.withResolvers<void>();
    using _a = later.join({ onCrowded: isTold.resolve, onRoom: () => {} });
    using _b = later.join({ onCrowded: () => {}, onRoom: () => {} });
    later.add();
    await isTold.promise;
    expect(told).toEqual([]);
  });

  test("is shared as soon as several are expected, and as long as they are", () => {
    const room = new Room(1);
    {
      using _expected = room.expect(2);
      expect(room.isShared).toBe(true);
    }
    expect(room.isShared).toBe(false);
    {
      using _expected = room.expect(1);
      expect(room.isShared).toBe(false);
    }
  });

  test("is contended while somebody waits for a place, and shared by two and more", async () => {
    const room = new Room(1);
    const place = room.tryReserve();
    expect(room.isContended).toBe(false);
    const next = room.reserve(never);
    expect(room.isContended).toBe(true);
    place?.[Symbol.dispose]();
    await next;
    expect(room.isContended).toBe(false);
    const nothing = { onCrowded: () => {}, onRoom: () => {} };
    using _one = room.join(nothing);
    expect(room.isShared).toBe(false);
    using _two = room.join({ ...nothing });
    expect(room.isShared).toBe(true);
  });
});
