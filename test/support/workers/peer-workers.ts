/**
 * Workers in this process on a broker in another place, and the agent that calls them there.
 */
import type { ToolCall } from "../../../harness/messages.ts";
import { cancelTopic } from "../../../worker/protocol/topics.ts";
import type { Peer } from "../../conformance/broker.ts";
import { type AnnouncingTool, type PlaceParts, WorkerPlace, openParts } from "./worker-place.ts";

/** Everything around the workers of one test but their broker; it ends with the test. */
export class PeerWorkers extends WorkerPlace {
  readonly #peer: Peer;

  private constructor(namespace: string, peer: Peer, parts: PlaceParts) {
    super(namespace, parts);
    this.#peer = peer;
  }

  /** @param peer the agents' side of the broker; its owner keeps it */
  static async prepare(namespace: string, peer: Peer): Promise<PeerWorkers> {
    const workers = new PeerWorkers(namespace, peer, await openParts());
    await workers.#listen();
    return workers;
  }

  /**
   * Calls a tool under a name, by which its run and its answer are known; when it resolves the
   * broker has the call.
   *
   * @param properties on top of `replyTo`
   */
  async publish(
    tool: AnnouncingTool,
    name: string,
    more: Partial<ToolCall> = {},
    properties: Readonly<Record<string, string | number>> = {},
  ): Promise<void> {
    const { topic, request, replyTo } = this.callOf(tool, name, more);
    await this.#peer.publish(topic, Buffer.from(request).toString(), { replyTo, ...properties });
  }

  /** Cancels the call of a name, as its caller unless other properties are given. */
  async cancel(
    name: string,
    payload: string,
    properties: Readonly<Record<string, string>> = { replyTo: this.replyTopic(name) },
  ): Promise<void> {
    await this.#peer.publish(cancelTopic(this.namespace, name), payload, properties);
  }

  async #listen(): Promise<void> {
    const next = await this.#peer.listen(this.answerPattern);
    void (async () => {
      // The peer ends with the test, and says nothing of it to who waits.
      for (;;) {
        const { topic, payload } = await next();
        this.hear({ topic, payload: Buffer.from(payload) });
      }
    })();
  }
}
