/**
 * Tools on any broker that answer as a test says: the worker's half of the wire over the broker
 * contract, without a worker.
 */
import type { Broker, BrokerSession, Delivery } from "../../../worker/broker/broker.ts";

/** A request as it came. */
export interface ServedRequest {
  readonly id: string;
  readonly params: Record<string, unknown>;
  readonly properties: Delivery["properties"];
  /** Publishes a status. */
  status(text: string): Promise<void>;
  /** Publishes members of the answer beside its id: `result` or `error`. */
  answer(members: object): Promise<void>;
  /** Answers with what a tool returned. */
  result(toolResult: object, more?: object): Promise<void>;
  /** Answers with an error. */
  error(code: string, message: string, data?: object): Promise<void>;
}

const { signal } = new AbortController();

/**
 * Serves `tools` until it is disposed of; each request is settled when `handle` is done with it.
 */
export async function serveTools(
  broker: Broker,
  tools: readonly string[],
  handle: (request: ServedRequest) => Promise<void> | void,
): Promise<AsyncDisposable> {
  const session = await broker.connect(tools, signal);
  void (async () => {
    for await (const delivery of session.deliveries) {
      await handle(toRequest(delivery, session));
      await delivery.settle("accepted");
    }
  })();
  return session;
}

function toRequest({ payload, properties }: Delivery, session: BrokerSession): ServedRequest {
  const request = JSON.parse(Buffer.from(payload).toString()) as ServedRequest;
  const { id, params } = request;
  const publish = async (topic: string | undefined, document: object): Promise<void> => {
    const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...document }));
    await session.publish({ topic: topic ?? "", payload: bytes }, signal);
  };
  const answer = (members: object) => publish(properties["replyTo"], { id, ...members });
  return {
    id,
    params,
    properties,
    answer,
    status: (text) => {
      const notice = { task_id: id, status_text: text, timestamp: new Date().toISOString() };
      return publish(properties["statusTo"], { method: "sam_remote_tool/status", params: notice });
    },
    result: (toolResult, more) =>
      answer({ result: { tool_result: toolResult, execution_time_ms: 12, ...more } }),
    error: (code, message, data) => answer({ error: { code, message, ...(data && { data }) } }),
  };
}
