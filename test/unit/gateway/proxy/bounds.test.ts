/**
 * The worker's end of a channel, under programs that do not keep to the protocol.
 */
import { mkdtempDisposable, readdir, readlink, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import type { FunctionTool } from "../../../../worker/gateway/functions.ts";
import { maxRequestBytes, maxUnsentBytes } from "../../../../worker/gateway/proxy/frames.ts";
import { maxConcurrentLookups, maxVainCancels } from "../../../../worker/gateway/proxy/host.ts";
import { maxReadSteps } from "../../../../worker/gateway/proxy/messages.ts";
import type { JsonObject } from "../../../../worker/support/json/json.ts";
import { gatewayOf, rawChannel } from "../../../support/gateway/raw-program.ts";

const echo: FunctionTool = { id: "echo", run: (args) => args };
const call = { type: "run_tool", id: "1", payload: { id: "echo", args: {} } };

function waitingTool() {
  const seen = { running: 0, aborted: 0 };
  const tool: FunctionTool = {
    id: "wait",
    run: (_args, signal) =>
      new Promise((_, reject) => {
        seen.running++;
        signal.addEventListener("abort", () => {
          seen.aborted++;
          reject(new Error("stopped"));
        });
      }),
  };
  return { tool, seen };
}

/** Files of this process in a directory that have no name there any more. */
async function openFiles(path: string): Promise<number> {
  const directory = await realpath(path);
  const descriptors = await readdir("/proc/self/fd");
  const paths = descriptors.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
  const isOne = (path: string) => path.startsWith(directory) && path.endsWith("(deleted)");
  return (await Promise.all(paths)).filter(isOne).length;
}

const waiting = (id: string) => ({ type: "run_tool", id, payload: { id: "wait", args: {} } });

describe("a channel closes for", { tags: "promise-G5" }, () => {
  const payload = { id: "echo", args: {} };
  const endless = "x".repeat(maxRequestBytes + 1);
  test.each<readonly [string, string, object | string]>([
    ["an endless line", "line_too_long", endless],
    ["a line that is too long", "line_too_long", `${JSON.stringify({ endless })}\n`],
    ["what is not JSON", "not_json", "{]\n"],
    ["an empty line", "not_json", "\n"],
    ["a list", "not_json", [call]],
    ["bytes that are not UTF-8", "not_json", "BYTES"],
    ["an unknown type", "unknown_type", { ...call, type: "toString" }],
    ["no type", "unknown_type", { id: "1", payload }],
    ["an answer", "unknown_type", { ...call, type: "response" }],
    ["the name of a user", "invalid_message", { ...call, user_id: "root" }],
    ["that in the payload", "invalid_message", { ...call, payload: { ...payload, user_id: "a" } }],
    [
      "that in a step",
      "invalid_message",
      { type: "run_chain", id: "1", payload: { steps: [{ toolId: "echo", user_id: "a" }] } },
    ],
    [
      "a member __proto__",
      "invalid_message",
      `{"type":"list_namespaces","id":"1","payload":{"__proto__":{}}}\n`,
    ],
    ["a cancel with a payload", "invalid_message", { type: "cancel", id: "1", payload: {} }],
    [
      "arguments that are a list",
      "invalid_message",
      { ...call, payload: { ...payload, args: [] } },
    ],
    ["no arguments", "invalid_message", { ...call, payload: { id: "echo" } }],
    ["no payload", "invalid_message", { type: "list_namespaces", id: "1" }],
    ["an id that is a number", "invalid_message", { ...call, id: 1 }],
    ["an empty id", "invalid_message", { ...call, id: "" }],
    ["a long id", "invalid_message", { ...call, id: "1".repeat(65) }],
    ["an id twice in flight", "duplicate_id", waiting("0")],
    ["an id of a request of another type", "duplicate_id", { ...call, id: "0" }],
  ])("%s", async (_, reason, frame) => {
    const { tool, seen } = waitingTool();
    await using channel = await rawChannel(gatewayOf(echo, tool));
    channel.send(waiting("0"));
    await vi.waitFor(() => expect(seen.running).toBe(1));
    if (frame === "BYTES") channel.inside.write(Buffer.from([0x22, 0xff, 0x22, 0x0a]));
    else channel.send(frame);
    const end = await channel.host.ended;
    expect(end.reason).toBe(reason);
    expect(end.message).not.toMatch(/root|user_id/);
    expect(seen).toEqual({ running: 1, aborted: 1 });
    await vi.waitFor(() => expect(channel.inside.closed).toBe(true));
  });

  const chainOf = (length: number) => {
    const steps = Array.from({ length }, () => ({ toolId: "echo" }));
    return { type: "run_chain", id: "1", payload: { steps } };
  };

  test("a chain that is too long to be refused", async () => {
    await using channel = await rawChannel(gatewayOf(echo));
    channel.send(chainOf(maxReadSteps));
    const [answer] = await channel.answers(1);
    expect(answer!.payload).toMatchObject({ code: "LIMIT_REACHED" });
    channel.send(chainOf(maxReadSteps + 1));
    expect((await channel.host.ended).reason).toBe("invalid_message");
  });

  test.each([
    ["that are not in flight", { type: "cancel", id: "none" }],
    ["that are cancelled already", { type: "cancel", id: "0" }],
  ])("too many cancels of ids %s", async (_, cancel) => {
    const gateway = gatewayOf(echo);
    const running = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    gateway.runTool = async () => {
      running.resolve();
      await release.promise;
      return { structured: {}, artifacts: [] };
    };
    await using channel = await rawChannel(gateway);
    channel.send(waiting("0"));
    await running.promise;
    channel.send({ type: "cancel", id: "0" });
    channel.send(...Array.from({ length: maxVainCancels }, () => cancel));
    channel.send({ type: "list_namespaces", id: "1", payload: {} });
    await channel.answers(1);
    channel.send(cancel);
    release.resolve();
    expect((await channel.host.ended).reason).toBe("too_many_cancels");
  });

  test("nothing at the bounds", async () => {
    await using channel = await rawChannel(gatewayOf(echo));
    const line = (text: string): string =>
      JSON.stringify({ ...call, id: "1".repeat(64), payload: { id: "echo", args: { text } } });
    const text = "x".repeat(maxRequestBytes - line("").length);
    channel.send(`${line(text)}\n`);
    const [answer] = await channel.answers(1);
    expect(answer!.payload).toMatchObject({ structured: { text } });
  });
});

describe("a program that reads no answer", { tags: "promise-G5" }, () => {
  const notes = "x".repeat(2_000);
  const document = { type: "describe_tool", payload: { id: "echo", level: "full" } };
  const requests = (count: number): string =>
    Array.from(
      { length: count },
      (_, id) => `${JSON.stringify({ ...document, id: `${id}` })}\n`,
    ).join("");

  test("is not read on: of 300,000 requests, few are", async () => {
    await using channel = await rawChannel(gatewayOf({ ...echo, notes }));
    const flood = requests(300_000);
    channel.send(flood);
    await vi.waitFor(
      () => expect(channel.outside.writableLength).toBeGreaterThanOrEqual(maxUnsentBytes),
      { timeout: 10_000 },
    );
    let readBytes = -1;
    // It reads until its own buffer is full.
    await vi.waitFor(() => {
      const before = readBytes;
      readBytes = channel.outside.bytesRead;
      expect(readBytes).toBe(before);
    });
    const answerBytes = 2 * notes.length;
    const inFlight = maxConcurrentLookups * answerBytes;
    expect(channel.outside.writableLength).toBeLessThan(maxUnsentBytes + inFlight);
    expect(readBytes).toBeLessThan(flood.length / 20);
  });

  const large = (sizeBytes: number) => {
    const seen = { started: 0, release: Promise.withResolvers<void>() };
    const tool: FunctionTool = {
      id: "large",
      async run({ mark }) {
        seen.started++;
        await seen.release.promise;
        return { mark: mark ?? null, text: "x".repeat(sizeBytes) };
      },
    };
    const calls = (count: number): readonly object[] =>
      Array.from({ length: count }, (_, mark) => {
        return { ...call, id: `${mark}`, payload: { id: "large", args: { mark } } };
      });
    return { tool, seen, calls };
  };

  test("has its large answers kept in files, and no more calls than it has permits for", async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), "answers-"));
    const { tool, seen, calls } = large(2 * maxUnsentBytes);
    const options = { maxConcurrentCalls: 3, directory: directory.path };
    await using channel = await rawChannel(gatewayOf(tool), options);
    const { outside } = channel;
    channel.send(...calls(5));
    await vi.waitFor(() => expect(seen.started).toBe(3));
    seen.release.resolve();
    await vi.waitFor(async () => expect(await openFiles(directory.path)).toBe(3));
    await vi.waitFor(() => expect(outside.writableLength).toBeGreaterThanOrEqual(maxUnsentBytes));
    for (let turns = 0; turns < 100; turns++) await nextTurn();
    expect(outside.writableLength).toBeLessThan(2 * maxUnsentBytes);
    expect(seen.started).toBe(3);
    expect(await readdir(directory.path)).toEqual([]);
    const answers = await channel.answers(5);
    const marks = answers.map(({ id, payload }) => [
      id,
      (payload["structured"] as JsonObject)["mark"],
    ]);
    expect(marks.toSorted()).toEqual(calls(5).map((_, mark) => [`${mark}`, mark]));
    await vi.waitFor(async () => expect(await openFiles(directory.path)).toBe(0));
  });

  test("has no file left when the channel closes", async () => {
    await using directory = await mkdtempDisposable(join(tmpdir(), "answers-"));
    const { tool, seen, calls } = large(2 * maxUnsentBytes);
    await using channel = await rawChannel(gatewayOf(tool), { directory: directory.path });
    channel.send(...calls(3));
    await vi.waitFor(() => expect(seen.started).toBe(3));
    seen.release.resolve();
    await vi.waitFor(async () => expect(await openFiles(directory.path)).toBe(3));
    expect((await channel.host.close()).reason).toBe("closed");
    expect(await openFiles(directory.path)).toBe(0);
  });

  test.each([undefined, "/nowhere"])("loses no answer where %s is for files", async (directory) => {
    const { tool, seen, calls } = large(2 * maxUnsentBytes);
    await using channel = await rawChannel(gatewayOf(tool), { ...(directory && { directory }) });
    channel.send(...calls(3));
    await vi.waitFor(() => expect(seen.started).toBe(3));
    seen.release.resolve();
    const answers = await channel.answers(3);
    expect(answers.map(({ type }) => type)).toEqual(["response", "response", "response"]);
  });

  test("does not keep its channel from being closed", async () => {
    const large: FunctionTool = { id: "large", run: () => ({ text: "x".repeat(8_000_000) }) };
    await using channel = await rawChannel(gatewayOf(large));
    channel.send(...["1", "2"].map((id) => ({ ...call, id, payload: { id: "large", args: {} } })));
    await vi.waitFor(() => expect(channel.outside.writableLength).toBeGreaterThan(0));
    expect((await channel.host.close()).reason).toBe("closed");
  });

  test("gets all answers once it reads", async () => {
    await using channel = await rawChannel(gatewayOf({ ...echo, notes }));
    channel.send(requests(2_000));
    await vi.waitFor(() =>
      expect(channel.outside.writableLength).toBeGreaterThanOrEqual(maxUnsentBytes),
    );
    const answers = await channel.answers(2_000);
    expect(new Set(answers.map(({ id }) => id)).size).toBe(2_000);
  });
});

test("a program with as many calls as it may have is not read on", async () => {
  const { tool, seen } = waitingTool();
  await using channel = await rawChannel(gatewayOf(echo, tool), { maxConcurrentCalls: 3 });
  const calls = Array.from({ length: 9 }, (_, id) => waiting(`${id}`));
  channel.send(...calls, { type: "list_namespaces", id: "list", payload: {} });
  channel.send("x".repeat(9_000_000));
  await vi.waitFor(() => expect(seen.running).toBe(3));
  let readBytes = -1;
  await vi.waitFor(() => {
    const before = readBytes;
    readBytes = channel.outside.bytesRead;
    expect(readBytes).toBe(before);
  });
  expect(seen.running).toBe(3);
  expect(readBytes).toBeLessThan(900_000);
  expect((await channel.host.close()).reason).toBe("closed");
  expect(seen.aborted).toBe(3);
});
