/**
 * A peer that serves tools as its script says: the other end of the wire, without any of the
 * worker's code.
 */
import { DevClient } from "../../support/brokers/dev-client.ts";

/** A request as it came. */
export interface Request {
  readonly topic: string;
  readonly id: string;
  readonly params: Record<string, unknown>;
  readonly properties: Record<string, unknown>;
}

/** Ways to answer a request. */
export interface Reply {
  status(text: string): Promise<void>;
  /** Publishes `document` as it is to the reply topic. */
  send(document: unknown): Promise<void>;
  result(toolResult: object, more?: object): Promise<void>;
  error(code: string, message: string): Promise<void>;
}

export type Script = (request: Request, reply: Reply) => Promise<void> | void;

/** A connected peer, and what it was asked. */
export interface ScriptedWorker extends AsyncDisposable {
  readonly requests: readonly Request[];
}

/** Connects a peer that serves every topic that matches `pattern`. */
export async function startScriptedWorker(
  port: number,
  pattern: string,
  script: Script,
): Promise<ScriptedWorker> {
  const { signal } = new AbortController();
  const client = await DevClient.connect(
    { host: "127.0.0.1", port, name: "scripted-worker", patterns: [pattern] },
    signal,
  );
  const requests: Request[] = [];
  const publish = (topic: unknown, document: unknown): Promise<void> =>
    client.publish(String(topic), Buffer.from(JSON.stringify(document)), {}, signal);
  const serve = async (): Promise<void> => {
    for await (const message of client.messages(signal)) {
      const { id, params } = JSON.parse(Buffer.from(message.payload).toString()) as Request;
      const properties = message.userProperties;
      const request = { topic: message.topic, id, params, properties };
      requests.push(request);
      const send = (document: unknown) => publish(properties["replyTo"], document);
      await script(request, {
        status: (text) =>
          publish(properties["statusTo"], {
            jsonrpc: "2.0",
            method: "sam_remote_tool/status",
            params: { task_id: id, status_text: text, timestamp: new Date().toISOString() },
          }),
        send,
        result: (toolResult, more) =>
          send({
            jsonrpc: "2.0",
            id,
            result: {
              tool_result: toolResult,
              execution_time_ms: 12,
              timed_out: false,
              created_artifacts: [],
              ...more,
            },
          }),
        error: (code, message) => send({ jsonrpc: "2.0", id, error: { code, message } }),
      });
    }
  };
  // The connection ends with the test.
  serve().catch(() => undefined);
  return { requests, [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() };
}
