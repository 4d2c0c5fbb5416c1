/**
 * The program's end of a channel, where the contract says nothing.
 */
import { describe, expect, test, vi } from "vitest";
import { ProxyClient } from "../../../../worker/gateway/proxy/client.ts";
import { ProxyHost } from "../../../../worker/gateway/proxy/host.ts";
import type { ProgramGateway } from "../../../../worker/gateway/gateway.ts";
import { failureOf } from "../../../conformance/gateway/under-test.ts";
import { gatewayOf } from "../../../support/gateway/raw-program.ts";
import { socketPair } from "../../../support/gateway/socket-pair.ts";

const never = new AbortController().signal;

async function connect(gateway: ProgramGateway) {
  const [inside, outside] = await socketPair();
  const host = new ProxyHost(outside, gateway);
  host.open();
  const client = new ProxyClient(inside);
  const dispose = async (): Promise<void> => {
    await client[Symbol.asyncDispose]();
    await host.close();
  };
  return { client, host, inside, outside, [Symbol.asyncDispose]: dispose };
}

const echo = gatewayOf({ id: "echo", run: (args) => args });

describe("a client", () => {
  test("loads artifacts", async () => {
    const gateway = gatewayOf();
    const bytes = Buffer.from([0, 255, 10]);
    const facts = { version: 2, mimeType: "image/png", sizeBytes: 3 };
    gateway.loadArtifact = async () => ({ bytes, ...facts });
    await using channel = await connect(gateway);
    const piece = { filename: "a", version: 2, offset: 0, length: 3 };
    expect(await channel.client.loadArtifact(piece, never)).toEqual({ bytes, ...facts });
  });

  test("sends no request that would close the channel", async () => {
    await using channel = await connect(echo);
    const { client } = channel;
    const large = client.runTool("echo", { x: "x".repeat(1024 * 1024) }, never);
    expect(await failureOf(large)).toMatchObject({ code: "RESOURCE_EXHAUSTED", retryable: false });
    const limit = client.searchTools("", NaN, never);
    expect(await failureOf(limit)).toMatchObject({ code: "INVALID_REQUEST" });
    expect(await client.runTool("echo", {}, never)).toBeDefined();
  });

  test("fails all operations when the channel closes", async () => {
    const gateway = gatewayOf({
      id: "wait",
      run: (_, signal) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error()))),
    });
    await using channel = await connect(gateway);
    const running = channel.client.runTool("wait", {}, never);
    void channel.client.listNamespaces(never).then(() => channel.host.close());
    expect(await failureOf(running)).toMatchObject({ code: "GATEWAY_CLOSED", op: "execute" });
    const later = channel.client.listNamespaces(never);
    expect(await failureOf(later)).toMatchObject({ code: "GATEWAY_CLOSED" });
  });

  test("closes a channel that it cannot read", async () => {
    const [inside, outside] = await socketPair();
    await using client = new ProxyClient(inside);
    const running = client.listNamespaces(never);
    outside.write('{"type":"response","id":"1","payload":[]}\n');
    expect(await failureOf(running)).toMatchObject({ code: "GATEWAY_CLOSED" });
    await vi.waitFor(() => expect(inside.destroyed).toBe(true));
    outside.destroy();
  });
});
