import { describe, expect, test } from "vitest";
import { judgeRequest, plainPathOf } from "../../../worker/egress/edge/requests.ts";
import type { Credential } from "../../../worker/protocol/credential.ts";
import type { RequestRule } from "../../../worker/protocol/request-rules.ts";

const credential = { name: "other" } as Credential;

function judge(lists: readonly (readonly RequestRule[])[], line: string, isSecure = true) {
  const [method = "", target = "", ...headerNames] = line.split(" ");
  return judgeRequest(lists, { method, target, isSecure, headerNames });
}

describe("a request", () => {
  test.each<[rule: RequestRule, line: string, isAllowed: boolean]>([
    [{}, "DELETE /a?b=c", true],
    [{ methods: ["GET"] }, "GET /", true],
    [{ methods: ["GET"] }, "HEAD /", false],
    [{ methods: ["GET"] }, "get /", false],
    // The answer would have the credential.
    [{}, "TRACE /", false],
    [{}, "PROPFIND /", false],
    [{ paths: ["/v1/*"] }, "GET /v1/", true],
    [{ paths: ["/v1/*"] }, "GET /v1/a/b?c=/../d", true],
    [{ paths: ["/v1/*"] }, "GET /v1", false],
    [{ paths: ["/v1/*"] }, "GET /v10/", false],
    [{ paths: ["/v1/*"] }, "GET //v1/", false],
    [{ paths: ["/v1/*"] }, "GET /V1/", false],
    [{ paths: ["/v1/*"] }, "GET /%76%31/a", true],
    [{ paths: ["/v1"] }, "GET /v1?a=b", true],
    [{ paths: ["/v1"] }, "GET /v1/", false],
    [{ paths: ["/*"] }, "GET /anything", true],
    [{ methods: ["GET"], paths: ["/v1/*"] }, "POST /v1/a", false],
    // Whatever the rule says, it is a path on the host.
    [{}, "GET http://api.example.com/", false],
    [{}, "OPTIONS *", false],
    [{}, "GET /a#b", false],
    [{}, "GET /\u00e9", false],
    // Servers differ in such paths; where a rule has none it does not matter.
    [{}, "GET /v1/../admin", true],
    [{ paths: ["/*"] }, "GET /v1/../admin", false],
    // Some hosts take another method or path from these headers.
    [{ methods: ["POST"] }, "POST / x-http-method-override", false],
    [{ methods: ["POST"] }, "POST / x_http_method", false],
    [{ methods: ["POST"] }, "POST / X-Method-Override", false],
    [{ methods: ["POST"] }, "POST / x-original-url", true],
    [{ paths: ["/v1/*"] }, "POST /v1/a x-original-url", false],
    [{ paths: ["/v1/*"] }, "POST /v1/a x-rewrite-url", false],
    [{ paths: ["/v1/*"] }, "POST /v1/a x-http-method-override", true],
    [{ credential }, "POST / x-http-method-override x-original-url", true],
  ])("%j of a rule decides about %s: %s", (rule, line, isAllowed) => {
    expect(judge([[rule]], line) !== undefined).toBe(isAllowed);
  });

  test("needs a rule of each list, and one rule has to match in all", () => {
    const both = [[{ methods: ["GET", "POST"] }], [{ paths: ["/v1/*"] }, { methods: ["POST"] }]];
    expect(judge(both, "GET /v1/a")).toBeDefined();
    expect(judge(both, "POST /v2")).toBeDefined();
    expect(judge(both, "GET /v2")).toBeUndefined();
    expect(judge([], "GET /")).toEqual({ credential: undefined });
    expect(judge([[]], "GET /")).toBeUndefined();
  });

  test("gets the credential of the first rule that matches and has one, and only by TLS", () => {
    const other = { name: "second" } as Credential;
    const rules = [{ paths: ["/open"] }, { paths: ["/v1/*"], credential }, { credential: other }];
    expect(judge([rules], "GET /v1/a")).toEqual({ credential });
    expect(judge([rules], "GET /v2")).toEqual({ credential: other });
    expect(judge([[{}], rules], "GET /open")).toEqual({ credential: other });
    expect(judge([rules], "GET /open", false)).toEqual({ credential: undefined });
    expect(judge([rules], "GET /v1/a", false)).toBeUndefined();
  });
});

describe("a path that servers may read in two ways is none", () => {
  test.each([
    ...["/a/../b", "/..", "/a/.", "/a/..;x=1/b", "/.;/b", "/%2e%2e/b", "/a/%2E./b"],
    ...["/a%2fb", "/a%2Fb", "/a\\b", "/a%5cb", "/a%252e%252e/b", "/a%25", "/a%00b", "/a%0d%0ab"],
    ...["/%ff", "/%", "/%zz", "/%c0%ae%c0%ae/"],
  ])("%s", (target) => {
    expect(plainPathOf(target)).toBeUndefined();
  });

  test.each([
    ["/", "/"],
    ["/a..b/...", "/a..b/..."],
    ["/caf%C3%A9%20x?q=%2f..", "/café x"],
  ])("%s is one", (target, path) => {
    expect(plainPathOf(target)).toBe(path);
  });
});
