/**
 * Who may use the console. Its server's answers are in test/integration/console/.
 */
import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { Guard, newToken, sessionCookie } from "../../../worker/console/http/guard.ts";

const token = newToken();

function guardAt(clock: { ms: number }, isLocal = true): Guard {
  return new Guard({ token, isLocal, clock: { monotonicMs: () => clock.ms } });
}

function request(headers: IncomingMessage["headers"], method = "POST"): IncomingMessage {
  return { method, headers, socket: { localPort: 8082 } } as unknown as IncomingMessage;
}

test("after thirty wrong tokens a minute passes before the right one counts", () => {
  const clock = { ms: 0 };
  const guard = guardAt(clock);
  for (let attempt = 0; attempt < 30; attempt++)
    expect(() => guard.logIn("wrong")).toThrow("not the token");
  expect(() => guard.logIn(token)).toThrow("wait a minute");
  clock.ms = 60_001;
  expect(guard.logIn(token)).not.toBe(guard.logIn(token));
});

test("a session lasts twelve hours, and 64 of them at once", () => {
  const clock = { ms: 1 };
  const guard = guardAt(clock);
  const withSession = (): IncomingMessage => {
    const session = guard.logIn(token);
    return request({ cookie: `other=1; ${sessionCookie(request({}), session).split(";")[0]}` });
  };
  const first = withSession();
  guard.requireSession(first);
  const others = Array.from({ length: 64 }, withSession);
  expect(() => guard.requireSession(first)).toThrow("Enter the token");
  guard.requireSession(others[0] ?? first);
  clock.ms += 12 * 3_600_000 + 1;
  expect(() => guard.requireSession(others[63] ?? first)).toThrow("Enter the token");
});

test.for([
  ["localhost:8082", true, true],
  ["127.0.0.1:8082", true, true],
  ["[::1]:8082", true, true],
  ["tools.example:8082", true, false],
  ["127.0.0.1.evil.example", true, false],
  ["tools.example", false, true],
  ["not a host", true, false],
] as const)("the name %s, loopback only: %j, is served: %j", ([host, isLocal, isServed]) => {
  const check = () =>
    guardAt({ ms: 0 }, isLocal).checkOrigin(request({ host, origin: `https://${host}` }));
  if (isServed) expect(check()).toBe(undefined);
  else expect(check).toThrow();
});

test("a link from another page opens the page and nothing else", () => {
  const guard = guardAt({ ms: 0 });
  const from = (mode: string) =>
    request({ host: "localhost", "sec-fetch-site": "cross-site", "sec-fetch-mode": mode }, "GET");
  expect(guard.checkOrigin(from("navigate"))).toBe(undefined);
  expect(() => guard.checkOrigin(from("no-cors"))).toThrow("another page");
});
