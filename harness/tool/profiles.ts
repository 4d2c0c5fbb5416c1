/**
 * The sandbox profiles that a worker with this environment would have.
 */
import { ConfigError, type Environment, readSandboxConfig } from "../../worker/config/config.ts";
import { type Profiles, builtInProfilesWith } from "../../worker/sandbox/profile.ts";
import { ProfilesError, loadProfiles } from "../../worker/sandbox/profiles-file.ts";
import { UsageError } from "../context.ts";

/** Says where own profiles are. */
export const profilesVariable = "SANDBOX_PROFILES_FILE";

/** Says which network the profile `standard` has. */
export const networkVariable = "SANDBOX_DEFAULT_NETWORK";

/**
 * The built-in ones and the operator's own. Throws UsageError with what a worker would say of the
 * file.
 */
export async function readProfiles(environment: Environment): Promise<Profiles> {
  try {
    const given = [profilesVariable, networkVariable].map((name) => [name, environment[name]]);
    const { sandbox } = readSandboxConfig(Object.fromEntries(given) as Environment);
    return await loadProfiles(sandbox.profilesFile, builtInProfilesWith(sandbox.defaultNetwork));
  } catch (error) {
    if (error instanceof ConfigError || error instanceof ProfilesError) {
      throw new UsageError(error.message, { cause: error });
    }
    throw error;
  }
}
