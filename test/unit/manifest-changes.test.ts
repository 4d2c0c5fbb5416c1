/**
 * In which order a worker follows a changed manifest.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import type { BrokerSession, OutboundMessage } from "../../worker/broker/broker.ts";
import { DescribedTools } from "../../worker/discovery/described-tools.ts";
import { Discovery } from "../../worker/discovery/discovery.ts";
import { diffManifests } from "../../worker/manifest/diff.ts";
import { type ManifestChange, queuesOfTools } from "../../worker/manifest/manifest.ts";
import { createLogger } from "../../worker/telemetry/logger.ts";
import { subscriptionRetryMs } from "../../worker/invocation/deliveries/subscriptions.ts";
import { followManifest } from "../../worker/manifest-changes.ts";
import { createMemoryBroker } from "../fakes/memory-broker/broker.ts";
import { patience } from "../support/patience.ts";
import { HandClock } from "./broker/hand-clock.ts";
import { manifest, tool } from "./manifest/fixtures.ts";

const namespace = "ns";
const clock = new HandClock();
const log = createLogger("silent", 1);
const { signal } = new AbortController();

const described = { description: "d", described: { parameters: { type: "object" } } };
const before = manifest(tool("kept", described), tool("old", described));
const after = manifest(
  tool("kept", { ...described, description: "changed" }),
  tool("fresh", described),
);

/**
 * A session that notes when each change is made at the broker, and what is published.
 *
 * @param refusals attempts to serve a tool that fail
 */
async function notedSession(order: string[], refusals = 0): Promise<BrokerSession> {
  const session = await createMemoryBroker({ namespace }).connect(["kept", "old"], signal);
  onTestFinished(() => session[Symbol.asyncDispose]());
  const noted = async (done: Promise<void>, what: string): Promise<void> => {
    await done;
    // A broker that is reached over a network answers later than this one.
    await new Promise(setImmediate);
    order.push(what);
  };
  return new Proxy(session, {
    get(target, name) {
      if (name === "serve" || name === "leave") {
        return async (toolName: string) => {
          if (name === "serve" && refusals-- > 0) throw new Error("refused");
          await noted(target[name](toolName, signal), `${name} ${toolName}`);
        };
      }
      if (name === "publish") {
        return (message: OutboundMessage) => {
          order.push(message.topic.split("/").slice(-2).join(" "));
          return target.publish(message, signal);
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** What happens at the broker from the new manifest on, until all of it is followed. */
async function followed(refusals: number, next = after, count = 5): Promise<readonly string[]> {
  const order: string[] = [];
  const session = await notedSession(order, refusals);
  using tools = new DescribedTools({ clock, log });
  tools.follow(before.tools.values());
  const resolve = () => undefined;
  await using discovery = new Discovery({ session, namespace, tools, resolve, clock, log });
  async function* changes(): AsyncGenerator<ManifestChange> {
    await vi.waitFor(() => expect(order).toEqual(["init kept", "init old"]), patience);
    order.length = 0;
    yield diffManifests(before, next)!;
    await vi.waitFor(() => {
      clock.advance(subscriptionRetryMs);
      expect(order).toHaveLength(count);
    }, patience);
  }
  const catalog = { manifest: next, changes: changes() };
  await followManifest(
    {
      foundation: { catalog, runners: new Map() },
      ...{ session, discovery, described: tools },
      onManifest: () => undefined,
    },
    queuesOfTools(before),
    { log, clock },
    signal,
  );
  return order;
}

test.each([
  [0, "when it is subscribed to"],
  [1, "when it is subscribed to at last"],
])(
  "after %d refusals agents hear of a new tool %s, and of a removed one before",
  async (refusals) => {
    const order = await followed(refusals);
    expect(order.toSorted()).toEqual(
      ["removed old", "init kept", "leave old", "serve fresh", "init fresh"].toSorted(),
    );
    expect(order.indexOf("removed old")).toBeLessThan(order.indexOf("leave old"));
    expect(order.indexOf("serve fresh")).toBeLessThan(order.indexOf("init fresh"));
  },
);

test("a tool that agents may not call any more is removed for them, and not broadcast", async () => {
  const catalog = { allowedCallers: new Set(["programmatic"] as const), namespace: undefined };
  const hidden = tool("kept", { ...described, catalog: { ...catalog, tags: [], examples: [] } });
  const order = await followed(0, manifest(hidden, tool("old", described)), 1);
  expect(order).toEqual(["removed kept"]);
});
