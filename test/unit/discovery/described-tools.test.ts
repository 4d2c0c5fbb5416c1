/**
 * What is known of tools: the manifest's parts before those of the code.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type DescribeTool,
  type Described,
  DescribedTools,
  callPatienceMs,
} from "../../../worker/discovery/described-tools.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import type { ToolDescription } from "../../../worker/protocol/discovery/tool-description.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import { type Logger, createLogger } from "../../../worker/telemetry/logger.ts";
import { patience } from "../../support/patience.ts";
import { keptLog } from "../../support/workers/kept-log.ts";
import { HandClock } from "../broker/hand-clock.ts";
import { tool } from "../manifest/fixtures.ts";

const derived: ToolDescription = {
  description: "by code",
  parameters: { type: "object", properties: { a: { type: "string" } } },
  result: { type: "object" },
  config: undefined,
  artifactParameters: new Map([["a", { isList: false, isOptional: false }]]),
};
const { signal } = new AbortController();
const log = createLogger("silent", 1);
const named = tool("named");

let clock: HandClock;
let tools: DescribedTools;
let asked: [tool: string, config: object | undefined][];
let answer: () => Promise<ToolDescription>;
let heard: Described[];

beforeEach(() => {
  clock = new HandClock();
  asked = [];
  answer = () => Promise.resolve(derived);
  const describe: DescribeTool = (entry, _, config) => {
    asked.push([entry.name, config]);
    return answer();
  };
  tools = new DescribedTools({ describe, clock, log });
  heard = [];
  tools.onDescribed((described) => heard.push(described));
});
afterEach(() => tools[Symbol.dispose]());

async function followed(...entries: readonly ToolEntry[]): Promise<void> {
  const before = heard.length;
  tools.follow(entries);
  await vi.waitFor(
    () => expect(heard.length).toBeGreaterThanOrEqual(before + entries.length),
    patience,
  );
}

describe("a description", () => {
  test("is the manifest's, and the code's where the manifest says nothing", async () => {
    const parameters = { type: "object" };
    const entry = tool("x", { described: { parameters, instructions: "i" } });
    await followed(entry);
    expect(heard).toMatchObject([{ description: { ...derived, parameters, instructions: "i" } }]);
    expect(await tools.forCall(entry, signal)).toMatchObject({ parameters });
  });

  test("asks no code when the manifest has text and parameters", async () => {
    const described = { parameters: { type: "object" } };
    await followed(tool("x", { description: "by hand", described }));
    expect(asked).toEqual([]);
    expect(heard).toMatchObject([{ description: { description: "by hand", parameters: {} } }]);
  });

  test("loses a schema of the code that cannot be used, as the log says", async () => {
    const kept = keptLog();
    tools = new DescribedTools({
      describe: () => answer(),
      clock,
      log: kept as unknown as Logger,
    });
    tools.onDescribed((described) => heard.push(described));
    answer = () => Promise.resolve({ ...derived, parameters: { $ref: "https://example.com" } });
    await followed(named);
    expect(heard).toMatchObject([{ description: { parameters: undefined, result: {} } }]);
    expect(kept.lines).toMatchObject([
      { event: "tool.schema_refused", facts: { tool: "named", field: "parameters" } },
    ]);
  });

  test("is made once for an entry, and again for another one or other code", async () => {
    await followed(named);
    tools.follow([tool("named")]);
    await tools.forCall(tool("named"), signal);
    expect(asked).toHaveLength(1);
    await followed(tool("named", { timeoutSeconds: 5 }));
    expect(asked).toHaveLength(2);
    tools.codeChanged("node");
    expect(asked).toHaveLength(2);
    tools.codeChanged("python");
    await vi.waitFor(() => expect(heard).toHaveLength(3), patience);
    expect(asked).toHaveLength(3);
  });

  test("stays in force while its code is asked again, with the entry's new parts", async () => {
    await followed(named);
    const [before] = tools.settled;
    answer = () => new Promise(() => {});
    tools.codeChanged("python");
    expect(tools.settled).toEqual([before]);
    expect(await tools.forCall(named, signal)).toBe(before?.callDescription);
    expect(await tools.forRequest(named, {}, signal)).toBe(before?.description);
    tools.follow([tool("named", { description: "by hand" })]);
    expect(tools.settled).toMatchObject([
      { description: { ...derived, description: "by hand" }, derived },
    ]);
    tools.follow([tool("named", { module: "other" })]);
    expect(tools.settled).toEqual([]);
  });

  test("is asked once for changes that come faster than answers", async () => {
    const made = Promise.withResolvers<ToolDescription>();
    answer = () => made.promise;
    tools.follow([named, tool("second"), tool("third")]);
    for (const _ of [1, 2, 3]) tools.codeChanged("python");
    made.resolve(derived);
    await vi.waitFor(() => expect(tools.settled).toHaveLength(3), patience);
    expect(asked.filter(([name]) => name === "third")).toHaveLength(1);
  });

  test("that failed is tried again after a minute, then two", async () => {
    answer = () => Promise.reject(new InvocationError("IMPORT_ERROR", "no module"));
    await followed(named);
    expect(heard).toMatchObject([{ failure: { code: "IMPORT_ERROR" } }]);
    expect(await tools.forCall(named, signal)).toMatchObject({ parameters: undefined });
    const tries = async (ms: number, total: number): Promise<void> => {
      clock.advance(ms);
      tools.retry();
      // This one is asked after all that is tried again.
      const last = tool(`after-${asked.length}`);
      tools.follow([named, last]);
      const names = () => heard.map((described) => described.tool.name);
      await vi.waitFor(() => expect(names()).toContain(last.name), patience);
      expect(asked.filter(([name]) => name === "named")).toHaveLength(total);
    };
    await tries(59_000, 1);
    await tries(1_000, 2);
    await tries(60_000, 2);
    await tries(60_000, 3);
  });
});

describe("a call", () => {
  test("waits for the first description, and runs with the manifest's after a while", async () => {
    const made = Promise.withResolvers<ToolDescription>();
    answer = () => made.promise;
    const entry = tool("x", { described: { instructions: "i" } });
    const waiting = tools.forCall(entry, signal);
    await vi.waitFor(() => expect(clock.slept).toContain(callPatienceMs), patience);
    clock.advance(callPatienceMs);
    expect(await waiting).toMatchObject({ parameters: undefined, instructions: "i" });
    const later = tools.forCall(entry, signal);
    made.resolve(derived);
    expect(await later).toMatchObject({ parameters: { type: "object" } });
  });

  test("waits for no description that has failed, nor where code is not asked", async () => {
    answer = () => Promise.reject(new Error("cannot be imported"));
    await followed(named);
    const [failed] = tools.settled;
    expect(failed).toHaveProperty("failure");
    answer = () => new Promise(() => {});
    clock.advance(60_000);
    tools.retry();
    await vi.waitFor(() => expect(asked).toHaveLength(2), patience);
    expect(await tools.forCall(named, signal)).toBe(failed?.description);
    using byManifest = new DescribedTools({ clock, log });
    expect(await byManifest.forCall(named, signal)).toMatchObject({ parameters: undefined });
    expect(clock.slept).not.toContain(callPatienceMs);
  });

  test("ends its wait when it is over", async () => {
    answer = () => new Promise(() => {});
    const over = new AbortController();
    const waiting = tools.forCall(named, over.signal);
    over.abort(new Error("over"));
    await expect(waiting).rejects.toThrow("over");
  });
});

describe("a request", () => {
  const config = { unit: "C" };
  const callable = { kind: "class", name: "Weather" } as const;

  test("has a class asked with its configuration, each time", async () => {
    const weather = tool("weather", { callable });
    await followed(weather);
    for (const _ of [1, 2]) await tools.forRequest(weather, config, signal);
    expect(asked).toEqual([
      ["weather", undefined],
      ["weather", config],
      ["weather", config],
    ]);
  });

  test.each([
    ["for a function", named, config],
    ["without a configuration", tool("weather", { callable }), {}],
  ])("%s gets what is known", async (_, entry, given) => {
    await followed(entry);
    expect(await tools.forRequest(entry, given, signal)).toMatchObject({ description: "by code" });
    expect(asked).toHaveLength(1);
  });

  test("is told why the code gave no description", async () => {
    answer = () => Promise.reject(new Error("secret path"));
    await expect(tools.forRequest(named, {}, signal)).rejects.toMatchObject({
      code: "INTERNAL_ERROR",
      message: "The worker could not describe the tool",
    });
  });

  test("is refused when too many wait", async () => {
    answer = () => new Promise(() => {});
    const weather = tool("weather", { callable });
    const asking = Array.from({ length: 19 }, () => tools.forRequest(weather, config, signal));
    await expect(Promise.race(asking)).rejects.toThrow("are waiting already");
    for (const each of asking) each.catch(() => undefined);
  });
});

test("the settled descriptions are the same array until one of them changes", async () => {
  await followed(named, tool("other"));
  const before = tools.settled;
  expect(before.map((each) => each.tool.name).toSorted()).toEqual(["named", "other"]);
  expect(tools.settled).toBe(before);
  tools.follow([named]);
  const afterRemoval = tools.settled;
  expect(afterRemoval.map((each) => each.tool.name)).toEqual(["named"]);
  answer = () => Promise.resolve({ ...derived, description: "by other code" });
  const heardBefore = heard.length;
  tools.codeChanged("python");
  await vi.waitFor(() => expect(heard.length).toBeGreaterThan(heardBefore), patience);
  expect(tools.settled[0]!.description.description).toBe("by other code");
});
