/**
 * What makes calls run twice, by the announcements of workers.
 */
import { beforeEach, describe, expect, test } from "vitest";
import { Conflicts, forgottenMs, maxRemembered } from "../../../worker/group/conflicts.ts";
import type { Announcement } from "../../../worker/protocol/messages/announcement.ts";
import { HandClock } from "../broker/hand-clock.ts";

const own: Announcement = {
  instance: "own",
  worker: "one",
  group: "default",
  store: "store",
  tools: ["a", "b", "c"],
};
const otherGroup = { ...own, instance: "other", worker: "two", group: "heavy", tools: ["c", "b"] };
const sameGroup = { ...own, instance: "other", worker: "two" };

let clock: HandClock;
let conflicts: Conflicts;

beforeEach(() => {
  clock = new HandClock();
  conflicts = new Conflicts(clock);
});

describe("another worker", () => {
  test("of another group with a tool of this one has each call run twice", () => {
    conflicts.record(own, otherGroup);
    expect(conflicts.current).toEqual([
      'group "heavy" has tools of this group: each call runs twice ("b", "c")',
    ]);
  });

  test("of the same group with another store may have a call run twice", () => {
    conflicts.record(own, { ...sameGroup, store: null });
    expect(conflicts.current).toEqual([
      'worker "two" of this group has another artifact store: a call can run twice',
    ]);
  });

  test.each([
    ["this worker itself", own],
    ["one of the same group and store", sameGroup],
    ["one of another group without such tools", { ...otherGroup, tools: ["d"] }],
    ["one of another group and store without such tools", { ...otherGroup, store: "x", tools: [] }],
  ])("is in nobody's way when it is %s", (_, other) => {
    conflicts.record(own, other);
    expect(conflicts.current).toEqual([]);
  });

  test("is told once for all workers of its group, with some of its tools", () => {
    const tools = Array.from({ length: 8 }, (_, index) => `t${index}`);
    for (const instance of ["2", "3"]) {
      conflicts.record({ ...own, tools }, { ...otherGroup, instance, tools });
    }
    expect(conflicts.current).toEqual([
      'group "heavy" has tools of this group: each call runs twice ("t0", "t1", "t2", "t3", "t4" and 3 more)',
    ]);
  });
});

describe("a conflict", () => {
  test("ends when the other worker no longer has the tools", () => {
    conflicts.record(own, otherGroup);
    conflicts.record(own, { ...otherGroup, tools: [] });
    expect(conflicts.current).toEqual([]);
  });

  test("ends when the other worker is not heard any more", () => {
    conflicts.record(own, otherGroup);
    clock.advance(forgottenMs);
    expect(conflicts.current).toHaveLength(1);
    clock.advance(1);
    expect(conflicts.current).toEqual([]);
  });

  test("of the oldest workers is forgotten when there are too many", () => {
    for (let index = 0; index <= maxRemembered; index++) {
      conflicts.record(own, { ...otherGroup, instance: String(index), group: String(index) });
    }
    expect(conflicts.current).toHaveLength(maxRemembered);
    expect(conflicts.current[0]).toContain('group "1"');
  });
});
