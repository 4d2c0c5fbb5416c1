/**
 * `harness env list`.
 */
import type { StoredEnvironment } from "../../worker/environments/store.ts";
import { type Context, exit } from "../context.ts";
import { printable } from "../invoke/screen.ts";
import { openStore } from "./store.ts";

/** The command line. */
export interface ListOptions {
  readonly json?: boolean;
}

/** Digits of a key that people see; they are enough for `remove`. */
const shownDigits = 12;
const bytesPerMegabyte = 1024 * 1024;

/** Prints a line for each environment. */
export async function listEnvironments(options: ListOptions, context: Context): Promise<number> {
  await using store = await openStore(context);
  const inUse = await store.keysInUse();
  for (const one of await store.list()) {
    const isUsed = inUse.has(one.key);
    const line = options.json ? JSON.stringify(rowOf(one, isUsed)) : textOf(one, isUsed);
    context.out.line(printable(line));
  }
  return exit.success;
}

function rowOf({ key, dir, facts, usedAtMs }: StoredEnvironment, inUse: boolean): object {
  return { key, dir, ...facts, usedAt: new Date(usedAtMs).toISOString(), inUse };
}

function textOf({ key, facts, usedAtMs }: StoredEnvironment, inUse: boolean): string {
  const megabytes = (facts.sizeBytes / bytesPerMegabyte).toFixed(1);
  const used = inUse ? "in use" : `used ${new Date(usedAtMs).toISOString().slice(0, 10)}`;
  return [key.slice(0, shownDigits), facts.runtime, `${megabytes} MB`, used, facts.title].join(
    "\t",
  );
}
