/**
 * Status messages from a tool to the agent.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Rig, namespace, startRig } from "../../../support/workers/rig.ts";
import { Agent } from "../../../../harness/agent.ts";

describe("statuses", () => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig({
      tools: {
        burst: { function: "status_burst" },
        raw: { function: "status_raw" },
        tidies: { function: "leaves_on_term" },
      },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  async function statusesOf(
    tool: string,
    args: Record<string, string | number>,
    timeoutSeconds = 30,
  ) {
    const texts: string[] = [];
    const result = await rig.agent.call(
      { tool, args, timeoutSeconds },
      { onStatus: (text) => texts.push(text) },
    );
    return { texts, result };
  }

  test("no status of a fast tool is lost, in 20 calls", { tags: "full" }, async () => {
    for (let call = 0; call < 20; call++) {
      const { texts } = await statusesOf("burst", { count: 5 });
      expect(texts).toEqual(["tick 0", "tick 1", "tick 2", "tick 3", "tick 4"]);
    }
  });

  test("a flood is thinned out, and its last status arrives", { tags: "promise-O4" }, async () => {
    const { texts, result } = await statusesOf("burst", { count: 5_000 });
    expect(result.kind).toBe("success");
    expect(texts.slice(0, 50)).toEqual(Array.from({ length: 50 }, (_, index) => `tick ${index}`));
    // Ten more for each second that it took.
    expect(texts.length).toBeLessThan(1_000);
    expect(texts.at(-1)).toBe("tick 4999");
    const finished = rig.logLines.find((line) => line.includes('"coalesced":4'));
    expect(finished).toBeDefined();
  });

  test("what is not a status line is dropped, and the lines around it arrive", async () => {
    const lines = ["nonsense", "[1]", '{"other": 1}', `{"status": "${"x".repeat(5_000)}"}`];
    const text = ['{"status": "before"}', ...lines, '{"status": "after"}', ""].join("\n");
    expect((await statusesOf("raw", { text })).texts).toEqual(["before", "after"]);
  });

  test(
    "control characters and forged line breaks do not get through",
    { tags: "promise-O4" },
    async () => {
      const text = `{"status": "a\\u001b[31mb\\r\\nc\\u202ed"}\n`;
      expect((await statusesOf("raw", { text })).texts).toEqual(["a [31mb  c d"]);
    },
  );

  test("a tool that is asked to end can still say what it does", async () => {
    const { texts, result } = await statusesOf("tidies", {}, 1);
    expect(result.kind).toBe("timed-out");
    expect(texts).toEqual(["tidying up"]);
  });

  test("two callers get their own statuses only", { tags: "promise-C7" }, async () => {
    await using other = await Agent.connect(
      { host: rig.broker.host, port: rig.broker.port, namespace, name: "other" },
      AbortSignal.timeout(30_000),
    );
    const texts = { ours: [] as string[], theirs: [] as string[] };
    await Promise.all([
      rig.agent.call(
        { tool: "burst", args: { count: 2 } },
        { onStatus: (t) => texts.ours.push(t) },
      ),
      other.call({ tool: "burst", args: { count: 3 } }, { onStatus: (t) => texts.theirs.push(t) }),
    ]);
    expect(texts.ours).toHaveLength(2);
    expect(texts.theirs).toHaveLength(3);
  });
});
