/**
 * Tools that call tools of other workers: two workers on a DevBroker, in real sandboxes.
 */
import { describe, expect, test } from "vitest";
import type { CallResult } from "../../../harness/agent.ts";
import { type Rig, type RigOptions, startRig } from "../../support/workers/rig.ts";

const python = `
async def asks(ctx, tool, args=None):
    try:
        result = await ctx.tools.call(tool, args or {})
    except Exception as error:
        return {"code": error.code, "retryable": error.retryable, "message": str(error)}
    return {"result": dict(result), "artifacts": [each["filename"] for each in result.artifacts]}


async def digs(ctx, level, to):
    try:
        below = await ctx.tools.call(to[0], {"level": level + 1, "to": [to[1], to[0]]})
    except Exception as error:
        return {"level": level, "code": error.code}
    return dict(below)


def whoami(ctx):
    return {"user": ctx.user_id, "session": ctx.session_id}
`;

const files = { "calls.py": python };

/** The result of a call that succeeded. */
function resultOf(answer: CallResult): Record<string, unknown> {
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
  return answer.toolResult;
}

/** Two workers on one broker; the second one disposes first. */
async function startPair(
  one: RigOptions["tools"],
  other: RigOptions["tools"],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly one: Rig; readonly other: Rig } & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const first = stack.use(await startRig({ tools: one, files, environment }));
  const { broker } = first;
  const second = stack.use(await startRig({ tools: other, files, environment, broker }));
  const all = stack.move();
  return { one: first, other: second, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

describe("two workers", () => {
  test("call each other to the bound of depth, with one slot each", async () => {
    const callers = { allowed_callers: ["direct", "programmatic"] };
    const digs = { module: "calls", function: "digs", ...callers };
    await using pair = await startPair(
      { ping: { ...digs, gateway: { remote: ["pong"] } } },
      { pong: { ...digs, gateway: { remote: ["ping"] } } },
      { SANDBOX_MAX_CONCURRENT: "1", SANDBOX_MAX_SUSPENDED: "8" },
    );
    const calls = [pair.one, pair.one, pair.other].map((rig) =>
      rig === pair.one
        ? rig.call("ping", { level: 0, to: ["pong", "ping"] })
        : rig.call("pong", { level: 0, to: ["ping", "pong"] }),
    );
    for (const answer of await Promise.all(calls))
      expect(resultOf(answer)).toEqual({ level: 3, code: "LIMIT_REACHED" });
  });
});
