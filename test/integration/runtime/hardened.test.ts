/**
 * The profile hardened of the library: programs call tools, and have neither sockets nor, in
 * Python, programs.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  Runtime,
  type RuntimeBackend,
  createFunctionGateway,
  openBubblewrap,
} from "../../../worker/runtime.ts";

const python = `
import os, socket

def trial(attempt):
    try:
        return str(attempt())
    except OSError as error:
        return error.strerror

__out = {
    "sum": (await tools.math.add(a=1, b=2))["sum"],
    "socket": trial(lambda: socket.socket()),
    "program": trial(lambda: os.posix_spawn("/usr/bin/true", ["true"], {})),
}
`;

const javascript = `
const { once } = await import("node:events");
const { connect } = await import("node:net");
const { execFileSync } = await import("node:child_process");
__out = {
  sum: (await tools.math.add({ a: 1, b: 2 })).sum,
  socket: (await once(connect(1, "127.0.0.1"), "error"))[0].code,
  program: String(execFileSync("/bin/echo", ["started"])).trim(),
};
`;

describe("code under hardened", { tags: "promise-S40" }, () => {
  let backend: RuntimeBackend;
  beforeAll(async () => {
    backend = await openBubblewrap();
  });
  afterAll(async () => {
    await backend[Symbol.asyncDispose]();
  });

  const refused = "Operation not permitted";
  test.for([
    ["python", python, { sum: 3, socket: refused, program: refused }],
    ["javascript", javascript, { sum: 3, socket: "EPERM", program: "started" }],
  ] as const)("calls tools and makes no socket: %s", async ([language, code, value]) => {
    const runtime = new Runtime({ backends: { hardened: backend }, defaultProfile: "hardened" });
    const add = { id: "math:add", description: "adds", run: () => ({ sum: 3 }) };
    const gateway = createFunctionGateway([add]);
    expect(await runtime.execute({ gateway, code, language })).toMatchObject({ value });
  });
});
