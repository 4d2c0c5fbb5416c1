import { expect, test } from "vitest";
import { WorkerEndpoints } from "../../../worker/egress/resolve.ts";

/** Endpoints on `broker:5672`, whose addresses are the answers, one after the other. */
function endpointsOf(...answers: readonly (readonly string[] | Error)[]) {
  let [nowMs, asked] = [0, 0];
  const clock = { monotonicMs: () => nowMs };
  const resolve = (): Promise<readonly string[]> => {
    const answer = answers[asked++] ?? [];
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  const endpoints = new WorkerEndpoints([{ host: "broker", port: 5672 }], clock, resolve);
  return { endpoints, later: () => (nowMs += 31_000), asked: () => asked };
}

test("an endpoint is its addresses on its port", async () => {
  const { endpoints, asked } = endpointsOf(["10.0.0.5"]);
  expect(await endpoints.has("10.0.0.5", 5672)).toBe(true);
  expect(await endpoints.has("10.0.0.6", 5672)).toBe(false);
  expect(await endpoints.has("10.0.0.5", 443)).toBe(false);
  expect(asked()).toBe(1);
});

test("other ports of an endpoint are its own where it has more, unless it is this host", async () => {
  const broker = { host: "broker", port: 5672, hasMorePorts: true };
  const clock = { monotonicMs: () => 0 };
  const at = (...addresses: readonly string[]) =>
    new WorkerEndpoints([broker], clock, () => Promise.resolve(addresses));
  expect(await at("192.0.2.9").has("192.0.2.9", 443)).toBe(true);
  expect(await at("192.0.2.9").has("192.0.2.8", 443)).toBe(false);
  expect(await at().has("192.0.2.9", 443)).toBe(false);
  expect(await at("127.0.0.1").has("127.0.0.1", 443)).toBe(false);
  expect(await at("127.0.0.1").has("127.0.0.1", 5672)).toBe(true);
});

test("an endpoint of this host is every address of this host", async () => {
  const { endpoints } = endpointsOf(["::1"]);
  expect(await endpoints.has("127.0.0.9", 5672)).toBe(true);
  expect(await endpoints.has("10.99.0.1", 5672)).toBe(false);
});

test("the port of an endpoint is closed until its name has an address", async () => {
  const { endpoints, later } = endpointsOf(new Error("EAI_AGAIN"), ["10.0.0.5"]);
  expect(await endpoints.has("10.0.0.6", 5672)).toBe(true);
  later();
  expect(await endpoints.has("10.0.0.6", 5672)).toBe(false);
});

test("a name without an answer is not looked up for each connection", async () => {
  const failed = new Error("EAI_AGAIN");
  const { endpoints, later, asked } = endpointsOf(failed, failed);
  for (let connection = 0; connection < 3; connection++)
    expect(await endpoints.has("10.0.0.6", 5672)).toBe(true);
  expect(asked()).toBe(1);
  later();
  await endpoints.has("10.0.0.6", 5672);
  expect(asked()).toBe(2);
});

test("an address that an endpoint had stays its own", async () => {
  const { endpoints, later } = endpointsOf(["10.0.0.5"], ["10.0.0.6"], new Error("EAI_AGAIN"));
  await endpoints.has("10.0.0.5", 5672);
  later();
  expect(await endpoints.has("10.0.0.5", 5672)).toBe(true);
  expect(await endpoints.has("10.0.0.6", 5672)).toBe(true);
  later();
  expect(await endpoints.has("10.0.0.5", 5672)).toBe(true);
});
