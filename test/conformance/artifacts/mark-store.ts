/**
 * What the marks of every artifact store have to do, for stores that other processes see.
 */
import { randomBytes } from "node:crypto";
import { describe, expect, test, vi } from "vitest";
import { type MarkStore, storeIdOf } from "../../../worker/artifacts/marks.ts";

const never = new AbortController().signal;
const hourMs = 60 * 60_000;
const content = (text: string): Uint8Array => Buffer.from(text);
const newName = (): string => `${randomBytes(32).toString("hex")}.1`;

/**
 * Describes marks as vitest tests. `create` is called inside each test, and makes two views of one
 * store, as two workers have them.
 */
export function describeMarkStore(
  name: string,
  create: () => Promise<readonly [MarkStore, MarkStore]>,
): void {
  describe(`mark store: ${name}`, () => {
    test("has no mark that was not created", async () => {
      const [one] = await create();
      expect(await one.read(newName(), never)).toBeUndefined();
      await one.touch(newName(), never);
      await one.remove(newName(), never);
      await one.sweep(() => 0, never);
    });

    test("shows a mark, whole, to everyone", async () => {
      const [one, other] = await create();
      const [empty, full] = [newName(), newName()];
      expect(await one.create(empty, content(""), never)).toBe(true);
      expect(await one.create(full, content("ü".repeat(100_000)), never)).toBe(true);
      expect((await other.read(empty, never))?.content.byteLength).toBe(0);
      const read = await other.read(full, never);
      expect(Buffer.from(read?.content ?? []).toString()).toBe("ü".repeat(100_000));
    });

    test("lets one of many create a mark", async () => {
      const [one, other] = await create();
      const name = newName();
      const made = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? one : other).create(name, content(String(index)), never),
        ),
      );
      expect(made.filter(Boolean)).toHaveLength(1);
      const read = await one.read(name, never);
      expect(Buffer.from(read?.content ?? []).toString()).toBe(String(made.indexOf(true)));
    });

    test("changes the stamp when it is touched, and not otherwise", async () => {
      const [one, other] = await create();
      const name = newName();
      await one.create(name, content("kept"), never);
      const stamp = async (): Promise<string | undefined> => (await other.read(name, never))?.stamp;
      for (let touches = 0; touches < 3; touches++) {
        const before = await stamp();
        expect(await stamp()).toBe(before);
        await vi.waitFor(async () => {
          await one.touch(name, never);
          expect(await stamp()).not.toBe(before);
        });
      }
    });

    test("notes what is not there yet, and changes nothing that is", async () => {
      const [one, other] = await create();
      const [noted, full] = [newName(), newName()];
      await one.create(full, content("kept"), never);
      await Promise.all([noted, noted, full].map((name) => other.note(name, never)));
      expect((await one.read(noted, never))?.content.byteLength).toBe(0);
      expect(Buffer.from((await one.read(full, never))?.content ?? []).toString()).toBe("kept");
      expect(await one.create(noted, content(""), never)).toBe(false);
    });

    test("removes a mark, which can be created again then", async () => {
      const [one, other] = await create();
      const name = newName();
      await one.create(name, content("1"), never);
      await other.remove(name, never);
      expect(await one.read(name, never)).toBeUndefined();
      expect(await one.create(name, content("2"), never)).toBe(true);
    });

    test("sweeps what is old, and nothing else", async () => {
      const [one, other] = await create();
      const name = newName();
      await one.create(name, content(""), never);
      const kept = newName();
      await one.note(kept, never);
      await other.sweep(() => hourMs, never);
      expect(await one.read(name, never)).toBeDefined();
      await other.sweep((given) => (given === kept ? hourMs : -hourMs), never);
      expect(await one.read(name, never)).toBeUndefined();
      expect(await one.read(kept, never)).toBeDefined();
    });

    test("has one id, whoever asks", async () => {
      const views = await create();
      const [id, ...others] = await Promise.all(views.map((view) => storeIdOf(view, never)));
      expect(id).toMatch(/^[0-9a-f-]{36}$/);
      expect(others).toEqual([id]);
      const [elsewhere] = await create();
      expect(await storeIdOf(elsewhere, never)).not.toBe(id);
    });

    test("rejects with the reason of its signal", async () => {
      const [one] = await create();
      const reason = new Error("given up");
      const aborted = AbortSignal.abort(reason);
      await expect(one.create(newName(), content(""), aborted)).rejects.toBe(reason);
      await expect(one.read(newName(), aborted)).rejects.toBe(reason);
    });
  });
}
