/**
 * What a whole run of tests has once: it costs nothing until a test wants it.
 */
import type { TestProject } from "vitest/node";
import { offerSharedRabbitMQ } from "./support/brokers/shared-rabbitmq.ts";

/** Offers it to all tests; returns what ends it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const rabbitmq = await offerSharedRabbitMQ();
  project.provide("sharedRabbitMQPort", rabbitmq.port);
  return async () => await rabbitmq[Symbol.asyncDispose]();
}
