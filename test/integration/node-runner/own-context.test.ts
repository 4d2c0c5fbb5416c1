/**
 * A context that is made by hand, as the test of a tool does.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ToolError, createToolContext } from "secure-tool-runtime/tool";
import { plain, asynchronous } from "../../fixtures/node/shapes.js";
import { toolsDirectory } from "./run-node-tool.ts";

test("needs nothing", async () => {
  const ctx = createToolContext();
  expect(ctx).toMatchObject({ userId: "", sessionId: "", appName: "", taskId: "" });
  expect(await ctx.getConfig("key")).toBeNull();
  expect(await ctx.listArtifacts()).toEqual({});
  expect(await ctx.loadArtifact("report")).toBeNull();
  expect(await ctx.sendStatus("to nobody")).toBe(false);
  expect(plain({})).toEqual({ hello: "you" });
});

test("knows what it was told", async () => {
  const directory = await toolsDirectory({ "q3.csv": "a,b" });
  await mkdir(join(directory, "output"));
  const statuses: string[] = [];
  const ctx = createToolContext({
    userId: "ada",
    config: { key: 5 },
    artifacts: { report: join(directory, "q3.csv") },
    outputDir: join(directory, "output"),
    onStatus: (text) => void statuses.push(text),
  });
  expect(await asynchronous({ name: "n" }, ctx)).toEqual({ args: { name: "n" }, user: "ada" });
  expect(await ctx.getConfig("key")).toBe(5);
  expect(await ctx.loadArtifactText("report")).toBe("a,b");
  expect(await ctx.sendStatus("heard")).toBe(true);
  expect(statuses).toEqual(["heard"]);
  await ctx.saveArtifactText("out.txt", "x");
  expect(await ctx.listOutputArtifacts()).toEqual(["out.txt"]);
});

test("says false for a status that its listener refuses or fails at", async () => {
  expect(await createToolContext({ onStatus: () => false }).sendStatus("x")).toBe(false);
  const failing = createToolContext({ onStatus: () => Promise.reject(new Error("no")) });
  expect(await failing.sendStatus("x")).toBe(false);
});

test("a ToolError is an Error that a test can expect", () => {
  expect(new ToolError("no", { cause: 1 })).toMatchObject({
    name: "ToolError",
    message: "no",
    cause: 1,
  });
});
