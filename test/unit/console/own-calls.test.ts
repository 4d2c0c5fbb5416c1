import { expect, test } from "vitest";
import type { NewCall } from "../../../worker/console/api.ts";
import type { LocalCall } from "../../../worker/console/calls/local-session.ts";
import { OwnCalls } from "../../../worker/console/calls/own-calls.ts";
import { decodeRequest } from "../../../worker/protocol/messages/request.ts";

function start(isTaken = true) {
  const delivered: LocalCall[] = [];
  const own = new OwnCalls("ns", {
    deliver: (call) => {
      delivered.push(call);
      return isTaken;
    },
  });
  const call = (more: Partial<NewCall> = {}): string | undefined =>
    own.make({ tool: "weather", arguments: { city: "Bern" }, inputs: {}, ...more });
  return { own, delivered, call };
}

const text = (value: object): Buffer => Buffer.from(JSON.stringify(value));

test("a call is the request that agents send", () => {
  const { delivered, call } = start();
  const data = { filename: "data.csv", version: 3 };
  const id = call({
    arguments: { city: "Bern", list: ["as it is"] },
    inputs: { data, list: [data, { ...data, version: 4 }] },
    toolConfig: { key: "secret" },
    profile: "restrictive",
    timeoutSeconds: 5,
  });
  const [{ topic = "", replyTo = "", payload = Buffer.of() } = {}] = delivered;
  expect(topic).toBe("ns/a2a/v1/sam_remote_tool/invoke/weather");
  expect(replyTo).toBe(`ns/a2a/v1/sam_remote_tool/response/console/${id}`);
  const address = { replyTo, statusTo: undefined, sentAtMs: undefined };
  expect(decodeRequest(JSON.parse(Buffer.from(payload).toString()), address, 1)).toMatchObject({
    ...{ id, taskId: id, toolName: "weather" },
    args: { city: "Bern", data: "data.csv", list: ["as it is"] },
    toolConfig: { key: "secret" },
    caller: { appName: "console", userId: "console", sessionId: "console" },
    references: new Map([
      ["data", data],
      ["list[0]", data],
      ["list[1]", { ...data, version: 4 }],
    ]),
    ...{ requestedProfile: "restrictive", timeoutSeconds: 5 },
  });
});

test("its request is kept without its configuration, and its answer with its artifacts", () => {
  const { own, delivered, call } = start();
  const id = call({ toolConfig: { key: "secret" } }) ?? "";
  expect(own.get(id)).toMatchObject({ request: { arguments: { city: "Bern" } } });
  expect(JSON.stringify(own.get(id))).not.toContain("secret");
  const created = { filename: "a.png", version: 0, mime_type: "image/png", size_bytes: 4 };
  const answer = { result: { created_artifacts: [created] } };
  delivered[0]?.onAnswer(text(answer));
  expect(own.get(id)?.answer).toEqual(answer);
  expect(own.get(id)?.artifacts).toEqual([
    { filename: "a.png", version: 0, mimeType: "image/png", sizeBytes: 4, description: null },
  ]);
  delivered[0]?.onAnswer(Buffer.from("no JSON"));
  expect(own.get(id)?.answer).toBe(undefined);
  expect(own.get(id)?.artifacts).toEqual([]);
});

test("it is open until it is settled", () => {
  const { own, delivered, call } = start();
  const id = call() ?? "";
  expect([own.isOpen(id), own.isOpen("another")]).toEqual([true, false]);
  delivered[0]?.onAnswer(text({ result: {} }));
  delivered[0]?.onSettled("accepted");
  expect(own.isOpen(id)).toBe(false);
  expect(own.get(id)?.answer).toEqual({ result: {} });
});

test("a call that is requeued has an answer, since no broker has it", () => {
  const { own, delivered, call } = start();
  const id = call() ?? "";
  delivered[0]?.onSettled("failed");
  expect(own.get(id)?.answer).toMatchObject({ id, error: { code: "TOOL_NOT_AVAILABLE" } });
});

test("a call that is not taken leaves nothing", () => {
  const { own, delivered, call } = start(false);
  expect(call()).toBe(undefined);
  const id = delivered[0]?.replyTo.split("/").at(-1) ?? "";
  expect([own.isOpen(id), own.get(id)]).toEqual([false, undefined]);
});

test("of the last hundred calls, at most 32 MiB are kept", () => {
  const { own, delivered, call } = start();
  const first = call() ?? "";
  const others = Array.from({ length: 100 }, () => call() ?? "");
  expect(own.get(first)).toBe(undefined);
  expect(own.get(others[0] ?? "")).toBeDefined();
  const large = text({ text: "x".repeat(9_000_000) });
  for (const { onAnswer } of delivered.slice(-4)) onAnswer(large);
  expect(own.get(others[96] ?? "")?.answer).toBe(undefined);
  expect(own.get(others[99] ?? "")?.answer).toBeDefined();
});
