/**
 * Where requests to the proxy lead, and which are refused.
 */
import { describe, expect, test } from "vitest";
import type { RequestHead } from "../../../worker/egress/http-server.ts";
import { absoluteTarget, tunnelTarget } from "../../../worker/egress/proxy-target.ts";

function head(url: string, rawHeaders: readonly string[], httpVersion = "1.1"): RequestHead {
  const pairs = Array.from({ length: rawHeaders.length / 2 }, (_, index) => [
    rawHeaders[2 * index]!.toLowerCase(),
    rawHeaders[2 * index + 1]!,
  ]);
  const headers = Object.fromEntries(pairs) as RequestHead["headers"];
  return { url, method: "GET", httpVersion, rawHeaders: [...rawHeaders], headers };
}

const absolute = (url: string, ...headers: readonly string[]) => absoluteTarget(head(url, headers));
const tunnel = (url: string, ...headers: readonly string[]) => tunnelTarget(head(url, headers));

describe("the target of an absolute URI", () => {
  test.each([
    ["http://a.example.com", "a.example.com", "a.example.com", 80, "/"],
    ["http://a.example.com/x?y=1", "a.example.com:80", "a.example.com", 80, "/x?y=1"],
    ["HTTP://A.Example.com.:8080?y", "a.example.com:8080", "a.example.com", 8080, "/?y"],
    ["http://192.0.2.1:81/", "192.0.2.1:81", "192.0.2.1", 81, "/"],
    ["http://xn--bcher-kva.example/", "xn--bcher-kva.example", "xn--bcher-kva.example", 80, "/"],
  ])("of %s is its host, port and path", (url, host, name, port, path) => {
    expect(absolute(url, "Host", host)).toEqual({ host: name, port, path });
  });

  test.each([
    ["/", "a.example.com"],
    ["*", "a.example.com"],
    ["https://a.example.com/", "a.example.com"],
    ["ftp://a.example.com/", "a.example.com"],
    ["http:///x", ""],
    ["http://a.example.com:0/", "a.example.com:0"],
    ["http://a.example.com:65536/", "a.example.com:65536"],
    ["http://a.example.com:/", "a.example.com"],
    ["http://user@a.example.com/", "a.example.com"],
    ["http://a.example.com@b.example.com/", "b.example.com"],
    ["http://a.example.com\\@b.example.com/", "a.example.com"],
    ["http://a.example.com#@b.example.com/", "a.example.com"],
    ["http://a%2eexample.com/", "a%2eexample.com"],
    ["http://b\u00fccher.example/", "b\u00fccher.example"],
    ["http://0x7f.1/", "0x7f.1"],
    ["http://2130706433/", "2130706433"],
    ["http://0177.0.0.1/", "0177.0.0.1"],
    ["http://127.1/", "127.1"],
    ["http://127.0.0.1./", "127.0.0.1."],
    ["http://a.0x7f/", "a.0x7f"],
    ["http://[::1]/", "[::1]"],
    ["http://[::ffff:127.0.0.1]/", "[::ffff:127.0.0.1]"],
  ])("is none of %s", (url, host) => {
    expect(() => absolute(url, "Host", host)).toThrow(/./);
  });
});

describe("Host", () => {
  test.each([
    [["Host", "b.example.com"]],
    [["Host", "a.example.com:81"]],
    [["Host", "a.example.com, b.example.com"]],
    [["Host", ""]],
    [["Host", "a.example.com", "Host", "a.example.com"]],
    [["Host", "a.example.com", "host", "b.example.com"]],
    [[]],
  ])("must be that of the target: not %j", (headers) => {
    expect(() => absolute("http://a.example.com/", ...headers)).toThrow("Host must be");
    expect(() => tunnel("a.example.com:8443", ...headers)).toThrow("Host must be");
  });

  test("needs a port beside a target that has one, but for those of http and https", () => {
    expect(() => absolute("http://a.example.com:443/", "Host", "a.example.com")).toThrow("Host");
    expect(tunnel("a.example.com:443", "Host", "a.example.com")).toMatchObject({ port: 443 });
    expect(tunnel("a.example.com:80", "Host", "a.example.com")).toMatchObject({ port: 80 });
  });

  test("may be missing in HTTP/1.0 alone", () => {
    expect(tunnelTarget(head("a.example.com:443", [], "1.0"))).toMatchObject({ port: 443 });
  });
});

describe("the target of CONNECT", () => {
  test.each([
    "a.example.com",
    "a.example.com:",
    "a.example.com:https",
    "a.example.com:443/",
    "http://a.example.com:443",
    "2130706433:443",
    "[::1]:443",
    ":443",
  ])("is none of %s", (url) => {
    expect(() => tunnel(url, "Host", url)).toThrow("CONNECT needs");
  });

  test.each([["Content-Length", "5"] as const, ["Transfer-Encoding", "chunked"] as const])(
    "has no body: not with %s",
    (name, value) => {
      const headers = ["Host", "a.example.com:443", name, value];
      expect(() => tunnel("a.example.com:443", ...headers)).toThrow("no body");
    },
  );
});

describe("a body", () => {
  test.each([
    ["gzip, chunked", "1.1"],
    ["chunked, chunked", "1.1"],
    ["identity", "1.1"],
    ["chunked", "1.0"],
  ])("is refused with Transfer-Encoding %s in HTTP/%s", (encoding, version) => {
    const headers = ["Host", "a.example.com", "Transfer-Encoding", encoding];
    expect(() => absoluteTarget(head("http://a.example.com/", headers, version))).toThrow("chunk");
  });

  test("is refused with two lengths", () => {
    const headers = ["Content-Length", "5", "Transfer-Encoding", "Chunked"];
    expect(() => absolute("http://a.example.com/", "Host", "a.example.com", ...headers)).toThrow(
      "Content-Length",
    );
  });
});

test.each(["0.9", "1.2", "2.0"])("HTTP/%s is refused", (version) => {
  const headers = ["Host", "a.example.com"];
  expect(() => absoluteTarget(head("http://a.example.com/", headers, version))).toThrow("HTTP/1.1");
  expect(() => tunnelTarget(head("a.example.com:80", headers, version))).toThrow("HTTP/1.1");
});
