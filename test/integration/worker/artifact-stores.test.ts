/**
 * Artifacts of both tool languages through the stores that workers share, within the operator's
 * limits.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { gcsVariables } from "../../../harness/fakes/gcs/variables.ts";
import { s3Variables } from "../../../harness/fakes/s3/variables.ts";
import type { CallResult } from "../../../harness/agent.ts";
import { useFakeGcs } from "../../support/gcs.ts";
import { useFakeS3 } from "../../support/s3.ts";
import { type Rig, nodeTool, startRig } from "../../support/workers/rig.ts";
import { never, sourceOf } from "../../unit/artifacts/fixtures.ts";

const bucket = "artifacts";
const server = useFakeS3({ buckets: [bucket] });
const gcsServer = useFakeGcs({ buckets: [bucket] });

/** Variables of the stores, on top of the rig's own. */
const stores: Readonly<Record<string, () => Readonly<Record<string, string>>>> = {
  filesystem: () => ({}),
  s3: () => s3Variables(server(), bucket),
  gcs: () => gcsVariables(gcsServer(), bucket),
};

const files = {
  "nesting.py": `
def nests(ctx):
    import os
    os.makedirs("/sandbox/work/output/charts")
    with open("/sandbox/work/output/charts/may.png", "w") as file:
        file.write("x")
    ctx.save_artifact_text("beside.txt", "x")
    return {}
`,
};

const limits = {
  ARTIFACT_MAX_BYTES: "1000",
  ARTIFACT_CALL_MAX_BYTES: "1500",
  ARTIFACT_MAX_OUTPUTS: "3",
};

const withStore = (kind: string, variables: () => Record<string, string>): void => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig({
      tools: {
        python: { function: "saves" },
        node: nodeTool("artifacts.ts", "saves"),
        reads: { function: "reads" },
        saves_many: { function: "saves_many" },
        nests: { module: "nesting", function: "nests" },
      },
      files,
      environment: { ...variables(), ...limits },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  function failure(result: CallResult): string {
    expect(result).toMatchObject({ kind: "error", code: "ARTIFACT_ERROR" });
    return (result as Extract<CallResult, { kind: "error" }>).message;
  }

  /** What agents read as its type beside the content. */
  async function storedType(filename: string): Promise<unknown> {
    const isIt = ([key]: readonly [string, unknown]) => key.endsWith(`/${filename}/0`);
    if (kind === "s3")
      return [...server().bucket(bucket).objects].find(isIt)?.[1].headers["content-type"];
    if (kind === "gcs")
      return [...gcsServer().bucket(bucket).objects].find(isIt)?.[1].facts.contentType;
    const { basePath } = rig.config.artifacts.store as { basePath: string };
    const { root, userId, sessionId } = rig.scope;
    const meta = join(basePath, root, userId, sessionId, filename, "0.meta");
    return (JSON.parse(await readFile(meta, "utf8")) as Record<string, unknown>)["mime_type"];
  }

  test.for(["python", "node"])(
    "keeps the type that a tool of %s gives, or that of the name, and the answer its description",
    async (runtime) => {
      const [given, guessed] = [`${runtime}-given.bin`, `${runtime}-guessed.csv`];
      const described = { mime_type: "text/x-rows; charset=utf-8", description: "All rows – “é”" };
      expect(await rig.call(runtime, { name: given, text: "a", ...described })).toMatchObject({
        kind: "success",
        createdArtifacts: [
          {
            filename: given,
            version: 0,
            mimeType: described.mime_type,
            sizeBytes: 1,
            description: described.description,
          },
        ],
      });
      const result = await rig.call(runtime, { name: guessed, text: "a,b" });
      expect(result).toMatchObject({
        createdArtifacts: [{ filename: guessed, version: 0, mimeType: "text/csv", sizeBytes: 3 }],
      });
      for (const [filename, mimeType, content] of [
        [given, described.mime_type, "a"],
        [guessed, "text/csv", "a,b"],
      ] as const) {
        const { body, metadata } = await rig.store.open(rig.scope, { filename, version: 0 }, never);
        expect(metadata.mimeType).toBe(mimeType);
        expect(await text(body)).toBe(content);
        expect(await storedType(filename)).toBe(mimeType);
      }
      // Agents save NAME.metadata.json from the answer.
      const names = await rig.store.names(rig.scope, never);
      expect(names.filter((name) => name.endsWith(".metadata.json"))).toEqual([]);
    },
  );

  test("gets none of a call with an output in a sub-directory", async () => {
    expect(failure(await rig.call("nests"))).toBe(
      'Artifacts could not be saved: output "charts/may.png" is in a sub-directory, files must be directly in output/',
    );
    expect(await rig.store.versions(rig.scope, "beside.txt", never)).toEqual([]);
  });

  test("refuses inputs beyond the operator's limits, with both sizes", async () => {
    for (const [filename, sizeBytes] of [
      ["large.txt", 1_001],
      ["a.txt", 751],
      ["b.txt", 750],
    ] as const)
      await rig.store.save(
        rig.scope,
        filename,
        sourceOf("x".repeat(sizeBytes)),
        { mimeType: "text/plain" },
        never,
      );
    const reads = (...names: readonly string[]) =>
      rig.call(
        "reads",
        {},
        { references: new Map(names.map((filename) => [filename, { filename, version: 0 }])) },
      );
    expect(failure(await reads("large.txt"))).toBe(
      'Artifact "large.txt" for parameter "large.txt" could not be loaded: it has 1001 bytes, at most 1000 are allowed',
    );
    expect(failure(await reads("a.txt", "b.txt"))).toMatch(
      /: with it the inputs have 1501 bytes together, at most 1500 are allowed$/,
    );
    expect(await reads("a.txt")).toMatchObject({ kind: "success" });
  });

  test("gets no outputs beyond the operator's limits", async () => {
    expect(failure(await rig.call("saves_many", { count: 4 }))).toMatch(
      /: there are 4 output files or more, at most 3 are allowed$/,
    );
    expect(failure(await rig.call("python", { name: "c.txt", text: "x".repeat(1_001) }))).toMatch(
      /: output "c.txt" has 1001 bytes, at most 1000 are allowed$/,
    );
    expect(await rig.store.versions(rig.scope, "0.txt", never)).toEqual([]);
    expect(await rig.call("saves_many", { count: 3 })).toMatchObject({
      createdArtifacts: ["0.txt", "1.txt", "2.txt"].map((filename) => ({ filename, version: 0 })),
    });
  });
};
for (const [kind, variables] of Object.entries(stores))
  describe(`the store ${kind}`, { tags: kind === "s3" ? [] : ["full"] }, () =>
    withStore(kind, variables),
  );
