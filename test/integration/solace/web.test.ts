/**
 * What only WebSockets have: HTTP before them, messages that are no frames, and a port beside the
 * other one.
 */
import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { describe, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import { type SmfBroker, startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import {
  clientControl,
  encodeClientControl,
} from "../../../harness/fakes/solace/wire/client-control.ts";
import { textField } from "../../../harness/fakes/solace/wire/fields.ts";
import { encodeFrame, maxFrameBytes, protocol } from "../../../harness/fakes/solace/wire/frame.ts";
import { patience } from "../../support/patience.ts";
import { queue } from "./messages.ts";
import { Peer } from "./peer.ts";
import { openRaw, urlOver } from "./transports.ts";

const keepAlive = encodeFrame({ protocol: protocol.keepAliveV2 });

function loginAs(clientName: string): Buffer {
  return encodeFrame({
    protocol: protocol.clientControl,
    payload: encodeClientControl(clientControl.login, [textField(5, clientName)]),
  });
}

/** Waits until a client has been sent as much as ends with some bytes. */
function heardAtLast(client: Duplex, bytes: Buffer): Promise<void> {
  const heard: Buffer[] = [];
  client.on("data", (chunk: Buffer) => heard.push(chunk));
  return vi.waitFor(
    () => expect(Buffer.concat(heard).subarray(-bytes.length)).toEqual(bytes),
    patience,
  );
}

describe("the bytes of a client", () => {
  test("may be split into messages anywhere", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    const client = openRaw("ws", broker);
    for (const byte of [...loginAs("pieces"), ...keepAlive]) client.write(Buffer.of(byte));
    await heardAtLast(client, keepAlive);
    expect(broker.clients).toEqual(["pieces"]);
    client.destroy();
  });

  test("may be several frames in a message", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    const client = openRaw("ws", broker);
    client.write(Buffer.concat([loginAs("at once"), keepAlive]));
    await heardAtLast(client, keepAlive);
    expect(broker.clients).toEqual(["at once"]);
    client.destroy();
  });

  test("end the connection when a message is larger than any frame", { tags: "full" }, async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    const client = new WebSocket(urlOver("ws", broker), "smf.solacesystems.com");
    client.on("error", () => {});
    await once(client, "open");
    client.send(Buffer.alloc(maxFrameBytes + 1));
    const [code] = (await once(client, "close")) as [number];
    expect(code).toBe(1009);
  });
});

describe("the port", () => {
  test("tells who speaks HTTP to speak WebSocket", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    const response = await fetch(urlOver("ws", broker).replace("ws:", "http:"));
    expect(response.status).toBe(426);
  });

  test("leads to the same queues as the other one", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    broker.createQueue("q");
    await using publisher = await Peer.connect(broker.url);
    await using consumer = await Peer.connect(urlOver("ws", broker));
    const consumption = await consumer.consume("q");
    await publisher.publish(queue("q"), "from the other side");
    await vi.waitFor(() => expect(consumption.bodies).toEqual(["from the other side"]), patience);
  });

  test("is not there unless it is asked for", async () => {
    await using broker = await startSmfBroker();
    expect(broker.webUrl).toBeUndefined();
  });

  test("is closed with those who have not said yet what they want", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    const silent = await openSilent(broker);
    const closed = once(silent, "close");
    await broker.stop();
    await closed;
    await expect(fetch(urlOver("ws", broker).replace("ws:", "http:"))).rejects.toThrow();
  });
});

/** A connection that the broker has and that says nothing. */
async function openSilent(broker: SmfBroker): Promise<Duplex> {
  const socket = connect(Number(new URL(urlOver("ws", broker)).port), broker.host);
  socket.on("error", () => {});
  await once(socket, "connect");
  // Connections are accepted in order: with this answer, the one before it has been.
  await fetch(urlOver("ws", broker).replace("ws:", "http:"));
  return socket;
}
