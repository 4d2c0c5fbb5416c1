/**
 * The environments of PACKAGE_DIR, for commands.
 */
import { EnvironmentError } from "../../worker/environments/environments.ts";
import { EnvironmentStore } from "../../worker/environments/store.ts";
import { newId } from "../../worker/support/ids.ts";
import { CommandError, type Context, withCauses } from "../context.ts";
import { packageSettings } from "./variables.ts";

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
