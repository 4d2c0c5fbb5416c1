/**
 * `harness env remove`.
 */
import { CommandError, type Context, UsageError, exit } from "../context.ts";
import { openCache, openStore } from "./store.ts";

/** The command line. */
export interface RemoveOptions {
  readonly cache?: boolean;
}

/**
 * Removes the environments that the keys begin, and the cache where it is asked for. Throws
 * UsageError, CommandError.
 */
export async function removeEnvironments(
  beginnings: readonly string[],
  { cache = false }: RemoveOptions,
  context: Context,
): Promise<number> {
  if (beginnings.length === 0 && !cache) throw new UsageError("give a key, or --cache");
  await using store = await openStore(context);
  const all = await store.list();
  const keys = beginnings.map((beginning) => {
    const found = all.filter(({ key }) => key.startsWith(beginning));
    const [first, ...others] = found;
    if (first === undefined) throw new UsageError(`there is no environment ${beginning}`);
    if (others.length > 0)
      throw new UsageError(`${beginning} begins ${found.length} keys; give more of it`);
    return first.key;
  });
  for (const key of keys)
    if (!(await store.remove(key, context.signal)))
      throw new CommandError(`a worker of this host uses the environment ${key}`);
  if (cache && !(await openCache(context).empty()))
    throw new CommandError("an installation of this host uses the cache");
  return exit.success;
}
