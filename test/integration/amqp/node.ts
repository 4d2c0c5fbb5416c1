/**
 * What the tests of the RabbitMQ adapter share: a node, and a place on it per test.
 */
import { randomInt } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Channel, type ChannelModel, connect } from "amqplib";
import { afterAll, beforeAll, beforeEach, inject, onTestFinished } from "vitest";
import type { Broker } from "../../../worker/broker/broker.ts";
import type { BrokerLog } from "../../../worker/broker/log.ts";
import { reconnecting } from "../../../worker/broker/reconnecting.ts";

import {
  type OwnRabbitMQ,
  type RabbitMQ,
  rabbitmqProblem,
  startRabbitMQ,
  startTimeoutMs,
} from "../../support/brokers/rabbitmq.ts";
import { fixtureTools, manifestText, reachableDirectory } from "../../support/workers/rig.ts";
import { type SharedRabbitMQ, sharedRabbitMQ } from "../../support/brokers/shared-rabbitmq.ts";
import { keptLog } from "../../support/workers/kept-log.ts";

/** A signal that never aborts. */
export const never = new AbortController().signal;

/**
 * The node of all files, which must not be disturbed; tests of this file are skipped where there
 * can be none.
 */
export function useRabbitMQ(): () => SharedRabbitMQ {
  return useNode(() => sharedRabbitMQ(inject("sharedRabbitMQPort")));
}

/**
 * A node of this file's or group's own, which may be stopped, or have its connections closed, or
 * its settings changed.
 */
export function useOwnRabbitMQ(): () => OwnRabbitMQ {
  let node: OwnRabbitMQ | undefined;
  afterAll(() => node?.[Symbol.asyncDispose]());
  return useNode(async () => (node = await startRabbitMQ()));
}

function useNode<N extends RabbitMQ>(get: () => Promise<N>): () => N {
  const problem = rabbitmqProblem();
  let node: N | undefined;
  beforeAll(async () => {
    if (problem === undefined) node = await get();
  }, startTimeoutMs);
  beforeEach((context) => context.skip(problem !== undefined, problem));
  return () => node!;
}

/** A namespace that no other test uses. */
export function newNamespace(): string {
  return `test/place-${randomInt(2 ** 47)}`;
}

/** An adapter as the worker uses it. */
export function lasting(
  broker: Broker,
  log: BrokerLog = keptLog(),
): ReturnType<typeof reconnecting> {
  return reconnecting(broker, { maxAttempts: 0, backoff: { baseMs: 20, capMs: 200 }, log });
}

/** An operator at the broker: a connection and a channel to do things by hand. */
export interface Operator extends AsyncDisposable {
  readonly connection: ChannelModel;
  readonly channel: Channel;
}

export async function connectOperator(url: string): Promise<Operator> {
  const connection = await connect(url);
  connection.on("error", () => {});
  const channel = await connection.createChannel();
  // Some tests want the broker to refuse something.
  channel.on("error", () => {});
  return { connection, channel, [Symbol.asyncDispose]: () => connection.close() };
}

/** A user of the node, by URL: with permissions as `rabbitmqctl set_permissions` takes them. */
export async function addUser(
  node: RabbitMQ,
  name: string,
  permissions: readonly [configure: string, write: string, read: string],
): Promise<string> {
  const texts = permissions.map((pattern) => `<<${JSON.stringify(pattern)}>>`).join(", ");
  // One command, since each of them starts an Erlang of its own.
  await node.control(
    "eval",
    `ok = rabbit_auth_backend_internal:add_user(<<"${name}">>, <<"hush">>, <<"test">>),
     ok = rabbit_auth_backend_internal:set_permissions(<<"${name}">>, <<"/">>, ${texts}, <<"test">>).`,
  );
  return node.url.replace("guest:guest", `${name}:hush`);
}

/**
 * Has the process of a quorum queue stand still, so that it answers nothing, until the returned
 * object is disposed.
 */
export async function suspendQueue(node: RabbitMQ, queue: string): Promise<AsyncDisposable> {
  const tell = (verb: string): Promise<string> =>
    node.control(
      "eval",
      `{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"${queue}">>)),
       sys:${verb}(amqqueue:get_pid(Q)).`,
    );
  await tell("suspend");
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => void (await tell("resume")));
  return stack.move();
}

/** The environment of a worker process on the node that serves `sleeps`, for the test that runs. */
export async function surround(node: RabbitMQ, namespace: string): Promise<Record<string, string>> {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const manifestPath = join(base, "manifest.yaml");
  const sleeps = { module: "misbehaving", function: "sleeps" };
  await writeFile(manifestPath, manifestText({ sleeps }));
  return {
    SAM_NAMESPACE: namespace,
    AMQP_URL: node.url,
    CONNECT_RETRY_DELAY_MS: "200",
    MANIFEST_PATH: manifestPath,
    TOOLS_PYTHON_DIR: fixtureTools,
    // Each tool would take a sandbox at the start.
    TOOLS_DESCRIBED_BY: "manifest",
    SANDBOX_WORK_DIR: join(base, "work"),
    SANDBOX_MIN_FREE_DISK_MB: "1",
    HEALTH_PORT: "0",
  };
}
