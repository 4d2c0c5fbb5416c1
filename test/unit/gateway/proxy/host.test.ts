/**
 * The worker's end of a channel, under programs that keep to the protocol.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import type { FunctionTool } from "../../../../worker/gateway/functions.ts";
import { gatewayOf, rawChannel } from "../../../support/gateway/raw-program.ts";

const echo: FunctionTool = { id: "echo", run: (args) => args };

/** A tool that ends when the test lets it, also after an abort. */
function slowTool() {
  const release = Promise.withResolvers<void>();
  const seen = { running: 0, aborted: 0 };
  const tool: FunctionTool = {
    id: "slow",
    async run(_args, signal) {
      seen.running++;
      signal.addEventListener("abort", () => seen.aborted++);
      await release.promise;
      return {};
    },
  };
  return { tool, seen, release: () => release.resolve() };
}

const call = (id: string, tool: string, args: object = {}) => ({
  ...{ type: "run_tool", id, payload: { id: tool, args } },
});

describe("requests", () => {
  test("are not read before the channel is open", async () => {
    await using channel = await rawChannel(gatewayOf(echo), { isOpen: false });
    await new Promise<void>((resolve) => {
      channel.inside.write(`${JSON.stringify(call("1", "echo"))}\n`, () => resolve());
    });
    for (let turns = 0; turns < 10; turns++) await nextTurn();
    expect(channel.outside.bytesRead).toBe(0);
    channel.host.open();
    channel.host.open();
    expect(await channel.answers(1)).toEqual([
      { type: "response", id: "1", payload: { structured: {}, artifacts: [] } },
    ]);
  });

  test("are answered in any order", async () => {
    const slow = slowTool();
    await using channel = await rawChannel(gatewayOf(echo, slow.tool));
    channel.send(call("1", "slow"), call("2", "echo", { a: 1 }));
    await channel.answers(1);
    slow.release();
    const ids = (await channel.answers(2)).map(({ id }) => id);
    expect(ids).toEqual(["2", "1"]);
  });

  test("may be cut within characters", async () => {
    await using channel = await rawChannel(gatewayOf(echo));
    const line = Buffer.from(`${JSON.stringify(call("ü", "echo", { text: "ü€😀" }))}\n`);
    for (const byte of line) {
      channel.inside.write(Buffer.of(byte));
      await nextTurn();
    }
    const [answer] = await channel.answers(1);
    expect(answer).toMatchObject({ id: "ü", payload: { structured: { text: "ü€😀" } } });
  });

  test("may use an id again after its answer", async () => {
    await using channel = await rawChannel(gatewayOf(echo));
    for (let count = 1; count <= 3; count++) {
      channel.send(call("1", "echo"));
      await channel.answers(count);
    }
  });

  test("have answers of each type", async () => {
    const description = "Give back";
    const example = { description: "Nothing", args: {} };
    await using channel = await rawChannel(
      gatewayOf({ ...echo, id: "a:echo", description, examples: [example] }),
    );
    channel.send(
      { type: "search_tools", id: "1", payload: { query: "give", limit: 1 } },
      { type: "list_namespaces", id: "2", payload: {} },
      { type: "describe_tool", id: "3", payload: { id: "a:echo", level: "full" } },
      { type: "list_tool_examples", id: "4", payload: { id: "a:echo", max: 1 } },
      { type: "run_chain", id: "5", payload: { steps: [{ toolId: "a:echo" }, { toolId: "b" }] } },
      { type: "load_artifact", id: "6", payload: { filename: "a", offset: 0, length: 1 } },
    );
    const answers = await channel.answers(6);
    const payloads = answers.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map((one) => one.payload);
    const named = { id: "a:echo", name: "echo", namespace: "a" };
    const error = "The program may not call the tool b";
    const refusal = { code: "NOT_ALLOWED", retryable: false };
    expect(payloads).toEqual([
      { results: [{ ...named, shortDescription: description, tags: [] }] },
      { namespaces: ["a"] },
      { ...named, summary: description, notes: description, examples: [example] },
      { examples: [example] },
      {
        ...{ error, ...refusal, op: "resolve" },
        stepResults: [
          { toolId: "a:echo", structured: {}, artifacts: [] },
          { toolId: "b", error: { message: error, ...refusal } },
        ],
      },
      { error: "The program may not load artifacts", ...refusal, op: "resolve" },
    ]);
  });

  test("whose answer is too large to be sent get an error", async () => {
    const gateway = gatewayOf(echo);
    gateway.listNamespaces = () => Promise.resolve(["x".repeat(33 * 1024 * 1024)]);
    await using channel = await rawChannel(gateway);
    channel.send({ type: "list_namespaces", id: "1", payload: {} });
    const [answer] = await channel.answers(1);
    expect(answer).toMatchObject({ type: "error", payload: { code: "RESOURCE_EXHAUSTED" } });
  });
});

describe("a cancel", () => {
  test("ends its call, which is answered", async () => {
    const slow = slowTool();
    await using channel = await rawChannel(gatewayOf(echo, slow.tool));
    channel.send(call("1", "slow"), { type: "cancel", id: "1" });
    const [answer] = await channel.answers(1);
    expect(answer).toMatchObject({ type: "error", id: "1", payload: { code: "CANCELLED" } });
    expect(slow.seen).toEqual({ running: 1, aborted: 1 });
  });

  test("is read while as many calls run as may", async () => {
    const slow = slowTool();
    const options = { maxConcurrentCalls: 2 };
    await using channel = await rawChannel(gatewayOf(echo, slow.tool), options);
    channel.send(call("1", "slow"), call("2", "slow"));
    channel.send({ type: "cancel", id: "2" }, call("3", "echo"));
    const ids = (await channel.answers(2)).map(({ id }) => id);
    expect(ids).toEqual(["2", "3"]);
  });

  test("is the answer, even of a call that goes on and ends", async () => {
    const gateway = gatewayOf(echo);
    const release = Promise.withResolvers<void>();
    gateway.runTool = async () => {
      await release.promise;
      return { structured: {}, artifacts: [] };
    };
    await using channel = await rawChannel(gateway);
    channel.send(call("1", "a"), { type: "cancel", id: "1" }, call("2", "b"));
    channel.send({ type: "list_namespaces", id: "3", payload: {} });
    await channel.answers(1);
    release.resolve();
    const answers = await channel.answers(3);
    const outcomes = answers.map(({ id, type, payload }) => [id, type, payload["code"]]);
    expect(outcomes.slice(1)).toEqual([
      ["1", "error", "CANCELLED"],
      ["2", "response", undefined],
    ]);
  });

  test("of an id that is not in flight does nothing", async () => {
    await using channel = await rawChannel(gatewayOf(echo));
    channel.send({ type: "cancel", id: "1" }, call("1", "echo"));
    await channel.answers(1);
    channel.send({ type: "cancel", id: "1" }, call("2", "echo"));
    expect((await channel.answers(2)).map(({ type }) => type)).toEqual(["response", "response"]);
  });
});

describe("the end of a channel", () => {
  test("by the host aborts its calls, and waits for them", async () => {
    const seen: string[] = [];
    const ending = Promise.withResolvers<void>();
    const gateway = gatewayOf(echo);
    gateway.runTool = async (_id, _args, signal) => {
      seen.push("started");
      const aborted = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => aborted.resolve());
      await aborted.promise;
      seen.push("aborted");
      await ending.promise;
      seen.push("ended");
      throw signal.reason;
    };
    await using channel = await rawChannel(gateway);
    channel.send(call("1", "a"), call("2", "b"));
    await vi.waitFor(() => expect(seen).toHaveLength(2));
    const closed = channel.host.close().then((end) => {
      seen.push(end.reason);
    });
    await vi.waitFor(() => expect(seen).toHaveLength(4));
    await nextTurn();
    ending.resolve();
    await closed;
    expect(seen.slice(2)).toEqual(["aborted", "aborted", "ended", "ended", "closed"]);
  });

  test("at any moment starts no call that waited", async () => {
    for (let delay = 0; delay < 30; delay++) {
      const started: boolean[] = [];
      const release = Promise.withResolvers<void>();
      const gateway = gatewayOf(echo);
      await using channel = await rawChannel(gateway, { maxConcurrentCalls: 1 });
      let isClosed = false;
      gateway.runTool = async () => {
        started.push(isClosed);
        await release.promise;
        return { structured: {}, artifacts: [] };
      };
      channel.send(call("1", "a"), call("2", "b"));
      await vi.waitFor(() => expect(started).toHaveLength(1));
      for (let turns = 0; turns < 5; turns++) await nextTurn();
      release.resolve();
      for (let ticks = 0; ticks < delay; ticks++) await Promise.resolve();
      isClosed = true;
      await channel.host.close();
      await nextTurn();
      expect(started).not.toContain(true);
    }
  });

  test("before it is open reads nothing", async () => {
    await using channel = await rawChannel(gatewayOf(echo), { isOpen: false });
    channel.send(call("1", "echo"));
    expect((await channel.host.close()).reason).toBe("closed");
    channel.host.open();
    expect(channel.outside.bytesRead).toBe(0);
  });

  test("by the program aborts its calls", async () => {
    const slow = slowTool();
    await using channel = await rawChannel(gatewayOf(slow.tool));
    channel.send(call("1", "slow"));
    await vi.waitFor(() => expect(slow.seen.running).toBe(1));
    channel.inside.end();
    expect((await channel.host.ended).reason).toBe("ended");
    expect(slow.seen.aborted).toBe(1);
  });

  test("by a reset is a loss", async () => {
    await using channel = await rawChannel(gatewayOf(echo));
    channel.outside.destroy(new Error("reset"));
    expect((await channel.host.ended).reason).toBe("lost");
  });
});
