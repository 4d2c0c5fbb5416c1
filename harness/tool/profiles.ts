/**
 * The sandbox profiles that a worker with this environment would have.
 */
import { ConfigError, type Environment, readSandboxConfig } from "../../worker/config/config.ts";
import type { Profiles } from "../../worker/sandbox/profile.ts";
import { ProfilesError, loadProfiles } from "../../worker/sandbox/profiles-file.ts";
import { UsageError } from "../context.ts";

/** Says where own profiles are. */
export const profilesVariable = "SANDBOX_PROFILES_FILE";

/**
 * The built-in ones and the operator's own. Throws UsageError with what a worker would say of the
 * file.
 */
export async function readProfiles(environment: Environment): Promise<Profiles> {
  try {
    const { sandbox } = readSandboxConfig({ [profilesVariable]: environment[profilesVariable] });
    return await loadProfiles(sandbox.profilesFile);
  } catch (error) {
    if (error instanceof ConfigError || error instanceof ProfilesError) {
      throw new UsageError(error.message, { cause: error });
    }
    throw error;
  }
}
