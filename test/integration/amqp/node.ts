/**
 * What the tests of the RabbitMQ adapter share: one node per file, and a place on it per test.
 */
import { type Channel, type ChannelModel, connect } from "amqplib";
import { afterAll, beforeAll, beforeEach } from "vitest";
import {
  type RabbitMQ,
  type RabbitMQOptions,
  rabbitmqProblem,
  startRabbitMQ,
  startTimeoutMs,
} from "../../support/rabbitmq.ts";

/** A signal that never aborts. */
export const never = new AbortController().signal;

/** Starts a node for the tests of this file, and skips them where there can be none. */
export function useRabbitMQ(options: () => Promise<RabbitMQOptions>): () => RabbitMQ {
  const problem = rabbitmqProblem();
  let node: RabbitMQ | undefined;
  beforeAll(async () => {
    if (problem === undefined) node = await startRabbitMQ(await options());
  }, startTimeoutMs);
  afterAll(() => node?.[Symbol.asyncDispose]());
  beforeEach((context) => context.skip(problem !== undefined, problem));
  return () => node!;
}

let places = 0;

/** A namespace that no other test uses. */
export function newNamespace(): string {
  return `test/place-${++places}`;
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
  [configure, write, read]: readonly [string, string, string],
): Promise<string> {
  await node.control("add_user", name, "hush");
  await node.control("set_permissions", name, configure, write, read);
  return node.url.replace("guest:guest", `${name}:hush`);
}

/** Has the process of a quorum queue stand still, so that it answers nothing, until the returned object is disposed. */
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
