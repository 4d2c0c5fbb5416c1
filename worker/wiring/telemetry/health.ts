/**
 * Starts the health server of a worker, from a configuration.
 */
import { type Config, ConfigError } from "../../config/config.ts";
import { type Health, type HealthServer, startHealthServer } from "../../telemetry/health.ts";

/**
 * Undefined without `HEALTH_PORT`. Throws ConfigError for an address that cannot be listened on.
 * The caller owns the server.
 */
export async function startHealth(
  { healthPort: port, healthHost: host }: Config,
  health: Health,
): Promise<HealthServer | undefined> {
  if (port === 0) return undefined;
  return await startHealthServer({ port, host }, health).catch((error: unknown) => {
    const variables = host === undefined ? "HEALTH_PORT" : "HEALTH_HOST, HEALTH_PORT";
    const place = host === undefined ? `${port}` : `${host}:${port}`;
    throw new ConfigError([`${variables}: "${place}" cannot be listened on: ${String(error)}`]);
  });
}
