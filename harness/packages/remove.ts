/**
 * `harness env remove`.
 */
import { CommandError, type Context, UsageError, exit } from "../context.ts";
import { openStore } from "./store.ts";

/** Removes the environments that the keys begin. Throws UsageError, CommandError. */
export async function removeEnvironments(
  beginnings: readonly string[],
  context: Context,
): Promise<number> {
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
  return exit.success;
}
