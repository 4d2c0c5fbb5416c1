/**
 * What a broker knows besides its queues' contents: which there are, who may use them, and how far
 * publishers have come.
 */
import { describe, expect, test } from "vitest";
import { assuredField } from "../../../../harness/fakes/solace/wire/assured-control.ts";
import { Fields, numberField } from "../../../../harness/fakes/solace/wire/fields.ts";
import { PublisherFlow, PublisherFlows } from "../../../../harness/fakes/solace/publisher-flow.ts";
import {
  allows,
  encodeProperties,
  readProperties,
} from "../../../../harness/fakes/solace/wire/queue-properties.ts";
import { maxQueueNameBytes } from "../../../../harness/fakes/solace/router.ts";
import { Rig, message } from "./rig.ts";

describe("a broker", () => {
  test("brings a message to all queues that want it, or to none", () => {
    const { router } = new Rig();
    router.createQueue("full", { quotaMb: 0 });
    router.queues.get("q")!.subscriptions.add("t");
    router.queues.get("full")!.subscriptions.add(">");
    expect(router.publish(message("1"))).toMatchObject({ text: "Spool Over Quota" });
    expect(router.queues.get("q")!.describe().depth).toBe(0);
    router.deleteQueue("full");
    expect(router.publish(message("1"))).toBeUndefined();
    expect(router.queues.get("q")!.describe().depth).toBe(1);
  });

  test("has no queue without a name, or with a very long one", () => {
    const { router } = new Rig();
    for (const name of ["", "x".repeat(maxQueueNameBytes + 1)]) {
      expect(router.createQueue(name, {})).toEqual({ code: 400, text: "Invalid Name" });
    }
    expect(router.createQueue("x".repeat(maxQueueNameBytes), {})).toBeUndefined();
  });

  test("has a queue once, and tells consumers of one that goes", () => {
    const rig = new Rig();
    expect(rig.router.createQueue("q", {})).toEqual({ code: 400, text: "Already Exists" });
    const consumer = rig.consumer("a");
    rig.router.deleteQueue("q");
    expect(consumer.unbound).toEqual(["Unknown Queue"]);
  });
});

describe("a publisher's flow", () => {
  test("knows what came, and waits for what is missing", () => {
    const flow = new PublisherFlow(1, "f", "c");
    expect(flow.standing(1, 0)).toBe("new");
    flow.conclude(1, undefined);
    expect([flow.standing(1, 0), flow.standing(3, 2), flow.standing(2, 1)]).toEqual([
      "known",
      "early",
      "new",
    ]);
  });

  test("repeats why it refused a message", () => {
    const flow = new PublisherFlow(1, "f", "c");
    const refusal = { code: 503, text: "Spool Over Quota" };
    flow.conclude(1, refusal);
    flow.conclude(2, undefined);
    expect([flow.refusal(1), flow.refusal(2)]).toEqual([refusal, undefined]);
  });

  test("does not let a client that comes back take a refusal for a confirmation", () => {
    const flow = new PublisherFlow(1, "f", "c");
    const refusal = { code: 503, text: "Spool Over Quota" };
    [undefined, refusal, undefined].forEach((what, index) => flow.conclude(index + 1, what));
    expect([0, 1, 2, 3].map((known) => flow.confirmedAfter(known))).toEqual([1, 1, 3, 3]);
  });

  test("is opened again by its client alone, until it is closed", () => {
    const flows = new PublisherFlows();
    const flow = flows.open(7, "c");
    expect(flows.reopen(flow.name, "c")).toBe(flow);
    expect(flows.reopen(flow.name, "another")).toBeUndefined();
    flows.close(flow);
    expect(flows.reopen(flow.name, "c")).toBeUndefined();
  });
});

describe("permissions", () => {
  const asked = new Fields([
    numberField(assuredField.accessType, 2, 1),
    numberField(assuredField.permissions, 3, 4),
    numberField(assuredField.maxRedeliveries, 5, 1),
    numberField(assuredField.respectsTimeToLive, 1, 1),
  ]);
  const properties = readProperties(asked, "owner");

  test("and other settings are what the client asked for", () => {
    expect(properties).toMatchObject({
      accessType: "non-exclusive",
      owner: "owner",
      permission: "consume",
      maxRedeliveries: 5,
      respectsTimeToLive: true,
    });
    expect(readProperties(new Fields([]), "owner")).toMatchObject({
      accessType: "exclusive",
      permission: "none",
      maxRedeliveries: 0,
      respectsTimeToLive: false,
    });
  });

  test("let others do what includes less, and the owner everything", () => {
    expect(allows(properties, "other", "consume")).toBe(true);
    expect(allows(properties, "other", "modify-topic")).toBe(false);
    expect(allows(properties, "owner", "delete")).toBe(true);
  });

  test("are told to who binds", () => {
    const told = (user: string) => new Fields(encodeProperties(properties, user));
    expect(told("owner").number(assuredField.granted, 4)).toBe(15);
    expect(told("other").number(assuredField.granted, 4)).toBe(3);
    expect(told("other").number(assuredField.accessType, 1)).toBe(2);
  });
});
