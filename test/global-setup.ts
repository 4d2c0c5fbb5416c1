/**
 * What a whole run of tests has once: it costs nothing until a test wants it.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { offerSharedRabbitMQ } from "./support/brokers/shared-rabbitmq.ts";
import { quickPlace } from "./support/sandboxes/quick-place.ts";

/** Offers it to all tests; returns what ends it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const owned = new AsyncDisposableStack();
  const rabbitmq = owned.use(await offerSharedRabbitMQ());
  project.provide("sharedRabbitMQPort", rabbitmq.port);
  const preparedDir = await mkdtemp(join(quickPlace, "str-prepared-"));
  owned.defer(() => rm(preparedDir, { recursive: true, force: true }));
  await chmod(preparedDir, 0o755);
  project.provide("preparedDir", preparedDir);
  return () => owned.disposeAsync();
}
