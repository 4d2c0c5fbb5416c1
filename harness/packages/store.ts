/**
 * The environments of PACKAGE_DIR, for commands.
 */
import { PackageCache } from "../../worker/environments/build/cache.ts";
import { EnvironmentError } from "../../worker/environments/environments.ts";
import { EnvironmentStore } from "../../worker/environments/store.ts";
import { systemClock } from "../../worker/support/clock.ts";
import { newId } from "../../worker/support/ids.ts";
import { createLogger } from "../../worker/telemetry/logger.ts";
import { showLogLine } from "../../worker/telemetry/pretty-log.ts";
import { CommandError, type Context, withCauses } from "../context.ts";
import { packageSettings } from "./variables.ts";

/** The caches of installers in PACKAGE_DIR, which {@link openStore} has opened. */
export function openCache({ environment, err }: Context): PackageCache {
  const { PACKAGE_DIR: directory = "" } = packageSettings(environment);
  const log = createLogger("warn", { write: (line) => showLogLine(line.trimEnd(), err) });
  const options = { directory, uid: undefined, maxBytes: Infinity, clock: systemClock, newId, log };
  return new PackageCache(options);
}

/** Opens the store; the caller owns it. Throws CommandError. */
export async function openStore({ environment }: Context): Promise<EnvironmentStore> {
  const { PACKAGE_DIR: directory = "" } = packageSettings(environment);
  try {
    return await EnvironmentStore.open({ directory, uid: undefined, newId });
  } catch (error) {
    if (!(error instanceof EnvironmentError)) throw error;
    throw new CommandError(withCauses(error).join("\n  because: "), { cause: error });
  }
}
