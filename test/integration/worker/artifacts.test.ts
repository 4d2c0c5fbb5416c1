/**
 * Artifacts on their way into a tool and out of it, end to end on the filesystem store.
 */
import { randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { leastCopyBytes } from "../../../worker/support/files/copy-file.ts";
import { type Rig, startRig } from "../../support/workers/rig.ts";

/** A tool whose output is its input, without a copy, with a mode of the tool's choice. */
const passing = `
import os

def passes(ctx, data):
    path = ctx.list_artifacts()["data"]
    status = os.stat(path)
    output = "/sandbox/work/output/passed.bin"
    os.rename(path, output)
    os.chmod(output, 0o777)
    return {"mode": oct(status.st_mode & 0o7777), "is_own": status.st_uid == os.geteuid()}
`;

describe("artifacts", () => {
  let rig: Rig;
  const signal = new AbortController().signal;

  beforeAll(async () => {
    const names = [
      "reads",
      "saves",
      "leaves_traps",
      "output_replaced",
      "raises",
      "saves_beside_a_large_result",
      "leaves_a_daemon",
    ];
    const tools = Object.fromEntries(names.map((name) => [name, { function: name }]));
    rig = await startRig({
      tools: { ...tools, passes: { module: "passing", function: "passes" } },
      files: { "passing.py": passing },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  async function save(filename: string, content: string | Buffer): Promise<number> {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    const source = { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes]) };
    const metadata = { mimeType: "text/plain" };
    return (await rig.store.save(rig.scope, filename, source, metadata, signal)).version;
  }

  async function stored(filename: string, version: number | undefined): Promise<string> {
    const opened = await rig.store.open(rig.scope, { filename, version }, signal);
    return text(opened.body);
  }

  test("a reference to a version, the latest version, a user's artifact and a preloaded one reach the tool", async () => {
    await save("data.csv", "first");
    await save("data.csv", "second");
    await save("user:prefs.json", "{}");
    const result = await rig.call(
      "reads",
      { input_file: "data.csv" },
      {
        references: new Map([
          ["old", { filename: "data.csv", version: 0 }],
          ["latest", { filename: "data.csv", version: undefined }],
          ["prefs", { filename: "user:prefs.json", version: undefined }],
        ]),
        preloaded: new Map([
          [
            "sent",
            {
              filename: "note.txt",
              version: 0,
              mimeType: "text/plain",
              bytes: Buffer.from("sent along €"),
            },
          ],
        ]),
      },
    );
    expect(result).toMatchObject({
      kind: "success",
      toolResult: {
        input_file: "data.csv",
        inputs: {
          old: { name: "data.csv", text: "first" },
          latest: { text: "second" },
          prefs: { name: "user:prefs.json", text: "{}" },
          sent: { name: "note.txt", text: "sent along €" },
        },
      },
    });
  });

  test("a list parameter brings each of its artifacts", async () => {
    await save("a.txt", "A");
    await save("b.txt", "B");
    const result = await rig.call(
      "reads",
      { files: ["a.txt", "b.txt"] },
      {
        references: new Map([
          ["files[0]", { filename: "a.txt", version: undefined }],
          ["files[1]", { filename: "b.txt", version: undefined }],
        ]),
      },
    );
    expect(result).toMatchObject({
      toolResult: {
        files: ["a.txt", "b.txt"],
        inputs: { "files[0]": { text: "A" }, "files[1]": { text: "B" } },
      },
    });
  });

  test(
    "an artifact whose name would leave the directory is refused by name",
    { tags: "promise-R1" },
    async () => {
      const preloaded = new Map([
        [
          "input_file",
          { filename: "../evil.txt", version: 0, mimeType: "text/plain", bytes: Buffer.from("x") },
        ],
      ]);
      const result = await rig.call("reads", {}, { preloaded });
      expect(result).toMatchObject({
        kind: "error",
        code: "ARTIFACT_ERROR",
        message: expect.stringContaining("evil.txt"),
      });
    },
  );

  test("one that the kernel copies is the tool's own, and comes back whole as a version with the store's mode", async () => {
    const content = randomBytes(leastCopyBytes + 1);
    const version = await save("large.bin", content);
    const references = new Map([["data", { filename: "large.bin", version }]]);
    const result = await rig.call("passes", { data: "large.bin" }, { references });
    expect(result).toMatchObject({
      kind: "success",
      toolResult: { mode: "0o600", is_own: true },
      createdArtifacts: [{ filename: "passed.bin", version: 0, sizeBytes: content.length }],
    });
    const { basePath } = rig.config.artifacts.store as { basePath: string };
    const { root, userId, sessionId } = rig.scope;
    const path = join(basePath, root, userId, sessionId, "passed.bin/0");
    expect(content.equals(await readFile(path))).toBe(true);
    expect((await stat(path)).mode & 0o7777).toBe(0o644);
  });

  test("an output becomes an artifact with the type and description that the tool gave", async () => {
    const result = await rig.call("saves", {
      name: "report.bin",
      text: "content",
      mime_type: "application/x-report",
      description: "What came out",
    });
    expect(result).toMatchObject({
      kind: "success",
      createdArtifacts: [
        {
          filename: "report.bin",
          version: 0,
          mimeType: "application/x-report",
          sizeBytes: 7,
          description: "What came out",
        },
      ],
    });
    expect(await stored("report.bin", 0)).toBe("content");
  });

  test("an output without a type gets the one of its name, and saving again makes the next version", async () => {
    const results = [
      await rig.call("saves", { text: "one" }),
      await rig.call("saves", { text: "two" }),
    ];
    expect(results).toMatchObject([
      { createdArtifacts: [{ filename: "summary.txt", version: 0, mimeType: "text/plain" }] },
      { createdArtifacts: [{ filename: "summary.txt", version: 1 }] },
    ]);
    expect(await stored("summary.txt", undefined)).toBe("two");
  });

  test("concurrent calls that save one name all succeed with versions of their own", async () => {
    const calls = Array.from({ length: 8 }, (_, index) =>
      rig.call("saves", { name: "shared.txt", text: `call ${index}` }),
    );
    const versions = (await Promise.all(calls)).map((result) =>
      result.kind === "success" ? result.createdArtifacts[0]!.version : -1,
    );
    expect(versions.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test(
    "links, pipes, sockets, directories and second names in output/ are never taken",
    { tags: "promise-O1" },
    async () => {
      const result = await rig.call("leaves_traps");
      expect(result).toMatchObject({
        kind: "success",
        createdArtifacts: [{ filename: "good.txt" }],
      });
      expect(result.kind === "success" && result.createdArtifacts).toHaveLength(1);
      expect(rig.logLines.some((line) => line.includes("link.txt"))).toBe(true);
    },
  );

  test(
    "an output/ that was exchanged for a link to the host's files yields nothing",
    { tags: "promise-O1" },
    async () => {
      expect(await rig.call("output_replaced")).toMatchObject({
        kind: "success",
        createdArtifacts: [],
      });
    },
  );

  test(
    "a file that a left-behind process still writes is saved after that process is gone",
    { tags: "promise-E5" },
    async () => {
      const result = await rig.call("leaves_a_daemon");
      expect(result).toMatchObject({
        kind: "success",
        createdArtifacts: [{ filename: "beat.txt" }],
      });
      const created = (result as Extract<typeof result, { kind: "success" }>).createdArtifacts[0]!;
      expect(await stored("beat.txt", created.version)).toHaveLength(created.sizeBytes);
    },
  );

  test("an answer that would be too large to name its outputs leaves none, and the next call has their number", async () => {
    const tool = "saves_beside_a_large_result";
    const refused = await rig.call(tool);
    expect(refused).toMatchObject({ kind: "error", code: "RESOURCE_EXHAUSTED" });
    expect(await rig.store.versions(rig.scope, "beside.txt", signal)).toEqual([]);
    expect(await rig.call(tool, { size: 1 })).toMatchObject({
      createdArtifacts: [{ filename: "beside.txt", version: 0 }],
    });
  });

  test("an output that cannot be told from another by its name fails its call, and no other is saved", async () => {
    const result = await rig.call("saves", { name: "report\u202egnp.exe" });
    expect(result).toMatchObject({
      kind: "error",
      code: "ARTIFACT_ERROR",
      message: expect.stringContaining("report\\u{202e}gnp.exe"),
    });
  });

  test("a failing tool leaves no artifacts", async () => {
    await rig.call("raises");
    expect(await rig.store.versions(rig.scope, "output.txt", signal)).toEqual([]);
  });
});
