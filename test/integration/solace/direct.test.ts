/**
 * Direct messages of the real library through the SMF test broker.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import solace from "solclientjs";
import { describe, expect, test, vi } from "vitest";
import { startSmfBroker } from "../../../harness/fakes/solace/broker.ts";
import {
  clientControl,
  encodeClientControl,
} from "../../../harness/fakes/solace/wire/client-control.ts";
import { numberBytes, textField } from "../../../harness/fakes/solace/wire/fields.ts";
import { encodeFrame, protocol } from "../../../harness/fakes/solace/wire/frame.ts";
import { patience } from "../../support/patience.ts";
import { subcodeOf } from "./library.ts";
import { makeMessage, topic } from "./messages.ts";
import { Peer } from "./peer.ts";
import { openRaw, transports, urlOver } from "./transports.ts";

const factory = solace.SolclientFactory;

describe("a subscription", () => {
  test("with wildcards hears what matches, until it ends", async () => {
    await using broker = await startSmfBroker();
    await using peer = await Peer.connect(broker.url);
    await peer.subscribe("a/*/c/>");
    await peer.subscribe("end");
    for (const name of ["a/b/c", "a/b/c/d", "b/b/c/d", "a/é/c/d/e", "end"]) peer.send(name, "x");
    await vi.waitFor(() => expect(peer.heard.at(-1)?.topic).toBe("end"), patience);
    expect(peer.heard.map((heard) => heard.topic)).toEqual(["a/b/c/d", "a/é/c/d/e", "end"]);
    await peer.unsubscribe("a/*/c/>");
    for (const name of ["a/b/c/d", "end"]) peer.send(name, "x");
    await vi.waitFor(() => expect(peer.heard).toHaveLength(4), patience);
    expect(peer.heard.at(-1)?.topic).toBe("end");
  });

  test("that overlaps another brings each message once", async () => {
    await using broker = await startSmfBroker();
    await using peer = await Peer.connect(broker.url);
    await peer.subscribe("a/>");
    await peer.subscribe("a/b");
    peer.send("a/b", "1");
    peer.send("a/b", "2");
    await vi.waitFor(() => expect(peer.heard.at(-1)?.body).toBe("2"), patience);
    expect(peer.heard.map(({ body }) => body)).toEqual(["1", "2"]);
  });

  test("that is shared brings each message to one of the group", async () => {
    await using broker = await startSmfBroker();
    await using owned = new AsyncDisposableStack();
    const [a, b, alone] = [
      owned.use(await Peer.connect(broker.url)),
      owned.use(await Peer.connect(broker.url)),
      owned.use(await Peer.connect(broker.url)),
    ];
    for (const peer of [a, b]) await peer.subscribe("#share/group/t/>");
    await alone.subscribe("t/>");
    for (const body of ["1", "2", "3", "4"]) alone.send("t/x", body);
    await vi.waitFor(() => expect(alone.heard).toHaveLength(4), patience);
    await vi.waitFor(() => expect(a.heard.length + b.heard.length).toBe(4), patience);
    expect([a.heard.length, b.heard.length]).toEqual([2, 2]);
  });

  test("that is refused fails", async () => {
    await using broker = await startSmfBroker();
    await using peer = await Peer.connect(broker.url);
    broker.faults.subscribe = () => ({ code: 403, text: "Subscription ACL Denied" });
    expect(await subcodeOf(peer.subscribe("a"))).toBe("SUBSCRIPTION_ACL_DENIED");
    peer.send("a", "unheard");
    delete broker.faults.subscribe;
    await peer.subscribe("a");
    peer.send("a", "heard");
    await vi.waitFor(() => expect(peer.heard).toMatchObject([{ body: "heard" }]), patience);
  });
});

describe.each(transports)("a message over %s", (transport) => {
  test("keeps its user properties, its body and its names, whatever is in them", async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    await using peer = await Peer.connect(urlOver(transport, broker));
    await peer.subscribe("a/é");
    const properties = new solace.SDTMapContainer();
    const { STRING, INT32, BOOL } = solace.SDTFieldType;
    properties.addField("replyTo", solace.SDTField.create(STRING, "r/ü/€"));
    properties.addField("n", solace.SDTField.create(INT32, -7));
    properties.addField("yes", solace.SDTField.create(BOOL, true));
    const message = makeMessage(topic("a/é"), '{"x":"𝄞"}');
    message.setUserPropertyMap(properties);
    message.setReplyTo(topic("reply/here"));
    message.setCorrelationId("c-1");
    message.setApplicationMessageId("m-1");
    peer.session.send(message);
    await vi.waitFor(() => expect(peer.heard).toHaveLength(1), patience);
    const [{ body, message: heard } = { body: "", message }] = peer.heard;
    expect(body).toBe('{"x":"𝄞"}');
    expect(heard.getReplyTo()?.getName()).toBe("reply/here");
    expect(heard.getCorrelationId()).toBe("c-1");
    expect(heard.getApplicationMessageId()).toBe("m-1");
    const map = heard.getUserPropertyMap()!;
    expect(map.getKeys().sort()).toEqual(["n", "replyTo", "yes"]);
    expect(map.getField("replyTo").getValue()).toBe("r/ü/€");
    expect(map.getField("n").getValue()).toBe(-7);
  });

  test("of 20 MB arrives as it was sent", { tags: "full" }, async () => {
    await using broker = await startSmfBroker({ webPort: 0 });
    await using peer = await Peer.connect(urlOver(transport, broker), {
      sendBufferMaxSize: 64 * 1024 * 1024,
    });
    await peer.subscribe("large");
    const body = randomBytes(20_000_000);
    const heard = peer.next(solace.SessionEventCode.MESSAGE);
    peer.send("large", body);
    const message = (await heard) as solace.Message;
    expect(body.equals(message.getBinaryAttachment() as Uint8Array)).toBe(true);
  });

  test(
    "is dropped for a client that reads too slowly, and the others get it",
    { tags: transport === "tcp" ? [] : ["full"] },
    async () => {
      await using broker = await startSmfBroker({ webPort: 0 });
      const bound = once(broker.events, "subscribed");
      const slow = openRaw(transport, broker);
      slow.write(loginAndSubscribe("slow", "t"));
      await bound;
      await using quick = await Peer.connect(urlOver(transport, broker), {
        sendBufferMaxSize: 64 * 1024 * 1024,
      });
      await quick.subscribe("t");
      const losses: unknown[] = [];
      broker.events.on("discarded", (loss) => losses.push(loss));
      const body = Buffer.alloc(5_000_000);
      let sent = 0;
      // What fits into the sockets and the broker's own limit, and a little more.
      while (losses.length === 0 && sent < 20) {
        quick.send("t", body);
        sent++;
        await vi.waitFor(() => expect(quick.heard.length).toBe(sent), patience);
      }
      expect(losses[0]).toEqual({ clientName: "slow", topic: "t" });
      slow.destroy();
    },
  );
});

/** The first words of a client that never listens. */
function loginAndSubscribe(clientName: string, name: string): Buffer {
  const body = Buffer.from(`${name}\0`);
  const payload = Buffer.concat([Buffer.of(0x80), numberBytes(6 + body.length, 4), Buffer.of(4)]);
  return Buffer.concat([
    encodeFrame({
      protocol: protocol.clientControl,
      payload: encodeClientControl(clientControl.login, [textField(5, clientName)]),
    }),
    encodeFrame({
      protocol: protocol.subscription,
      payload: Buffer.concat([payload, body]),
    }),
  ]);
}

test("a request to another client's inbox is answered into one's own", async () => {
  await using broker = await startSmfBroker();
  await using asker = await Peer.connect(broker.url);
  await using answerer = await Peer.connect(broker.url);
  await answerer.subscribe("service");
  answerer.session.on(solace.SessionEventCode.MESSAGE, (request) => {
    const reply = factory.createMessage();
    reply.setBinaryAttachment(Buffer.from("pong"));
    answerer.session.sendReply(request, reply);
  });
  const reply = await new Promise<solace.Message>((resolve, reject) => {
    asker.session.sendRequest(
      makeMessage(topic("service"), "ping"),
      10_000,
      (_session, message) => resolve(message),
      (_session, { message }) => reject(new Error(message)),
    );
  });
  expect(Buffer.from(reply.getBinaryAttachment() as Uint8Array).toString()).toBe("pong");
});
