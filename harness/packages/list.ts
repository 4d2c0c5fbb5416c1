/**
 * `harness env list`.
 */
import type { StoredEnvironment } from "../../worker/environments/store.ts";
import { type Context, exit } from "../context.ts";
import { printable } from "../invoke/screen.ts";
import { openCache, openStore } from "./store.ts";

/** The command line. */
export interface ListOptions {
  readonly json?: boolean;
}

/** Digits of a key that people see; they are enough for `remove`. */
const shownDigits = 12;
const bytesPerMegabyte = 1024 * 1024;

/** Prints a line for each environment, and one for the cache. */
export async function listEnvironments(options: ListOptions, context: Context): Promise<number> {
  await using store = await openStore(context);
  const inUse = await store.keysInUse();
  for (const one of await store.list()) {
    const isUsed = inUse.has(one.key);
    const line = options.json ? JSON.stringify(rowOf(one, isUsed)) : textOf(one, isUsed);
    context.out.line(printable(line));
  }
  const cacheBytes = await openCache(context).sizeBytes();
  if (cacheBytes > 0)
    context.out.line(
      options.json ? JSON.stringify({ cacheBytes }) : `cache\t${megabytes(cacheBytes)} MB`,
    );
  return exit.success;
}

function rowOf({ key, dir, facts, usedAtMs }: StoredEnvironment, inUse: boolean): object {
  return { key, dir, ...facts, usedAt: new Date(usedAtMs).toISOString(), inUse };
}

function textOf({ key, facts, usedAtMs }: StoredEnvironment, inUse: boolean): string {
  const used = inUse ? "in use" : `used ${new Date(usedAtMs).toISOString().slice(0, 10)}`;
  return [
    key.slice(0, shownDigits),
    facts.runtime,
    `${megabytes(facts.sizeBytes)} MB`,
    used,
    facts.title,
  ].join("\t");
}

function megabytes(bytes: number): string {
  return (bytes / bytesPerMegabyte).toFixed(1);
}
