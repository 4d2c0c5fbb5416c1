/**
 * A tool finds nothing of the worker, of the host or of other calls: it searches everything that it
 * can read.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { Agent } from "../../harness/agent.ts";
import { startDevBroker } from "../../harness/dev-broker/dev-broker.ts";
import {
  type Rig,
  type RigTool,
  manifestText,
  namespace,
  reachableDirectory,
  startRig,
  workerEnvironment,
} from "../support/workers/rig.ts";
import { WorkerProcess } from "../support/workers/worker-process.ts";
import { patience } from "../support/patience.ts";
import { awaitedLater } from "../support/workers/awaited-later.ts";

const fixtureTools = fileURLToPath(new URL("../fixtures/tools/", import.meta.url));
const hostile = (name: string, more: Partial<RigTool> = {}): RigTool => ({
  module: "hostile",
  function: name,
  ...more,
});

/**
 * A secret in two parts: whoever looks for it is told the parts, so that the search itself writes
 * it nowhere.
 */
function newSecret(): { readonly whole: string; readonly start: string; readonly rest: string } {
  const [start, rest] = [randomBytes(8).toString("hex"), randomBytes(8).toString("hex")];
  return { whole: start + rest, start, rest };
}

/** Whether the worker has started the tool `sleeps`. */
function sleepHasStarted(rig: Rig): boolean {
  return rig.logLines.some((line) => line.includes('"sleeps"') && line.includes("tool.started"));
}

describe("between two calls", () => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig({
      tools: {
        leaves_notes: hostile("leaves_notes"),
        finds_notes: hostile("finds_notes"),
        holds: hostile("holds"),
        searches: hostile("searches"),
        searches_permissive: hostile("searches", { sandbox_profile: "permissive" }),
        kills_everybody: hostile("kills_everybody"),
        sleeps: { function: "sleeps" },
        reads: { function: "reads" },
      },
    });
  });
  afterAll(() => rig[Symbol.asyncDispose]());

  test(
    "nothing passes that the earlier one left in files, shared memory or message queues",
    { tags: "promise-C1" },
    async () => {
      expect(await rig.call("leaves_notes")).toMatchObject({
        kind: "success",
        // There is none to leave anything in.
        toolResult: { queue: false },
      });
      expect(await rig.call("finds_notes")).toMatchObject({
        kind: "success",
        toolResult: { found: [] },
      });
    },
  );

  test("that run at once, neither finds what the other holds", { tags: "promise-C4" }, async () => {
    const { whole, start, rest } = newSecret();
    const held = Promise.withResolvers<string>();
    const call = { tool: "holds", args: { secret: whole }, toolConfig: { token: whole } };
    // It ends with the rig.
    void awaitedLater(rig.agent.call(call, { onStatus: held.resolve }));
    await held.promise;
    for (const tool of ["searches", "searches_permissive"]) {
      expect(await rig.call(tool, { start, rest })).toMatchObject({
        kind: "success",
        toolResult: { found: [], searched: expect.toSatisfy((files: number) => files > 5) },
      });
    }
  });

  test(
    "that run at once, one that kills every process it can leaves the other alone",
    { tags: "promise-C4" },
    async () => {
      const running = rig.call("sleeps", { seconds: 1.5 });
      await vi.waitFor(() => expect(sleepHasStarted(rig)).toBe(true), patience);
      expect(await rig.call("kills_everybody")).toMatchObject({ toolResult: { killed: true } });
      expect(await running).toMatchObject({ kind: "success", toolResult: { slept: 1.5 } });
    },
  );

  test(
    "of two users or two sessions, neither gets the other's artifacts",
    { tags: "promise-C5" },
    async () => {
      const bytes = Buffer.from("for one user's eyes");
      const source = { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes]) };
      const signal = new AbortController().signal;
      for (const filename of ["secret.txt", "user:secret.txt"]) {
        await rig.store.save(rig.scope, filename, source, { mimeType: "text/plain" }, signal);
      }
      const read = (filename: string, userId: string, sessionId: string) =>
        rig.call(
          "reads",
          {},
          {
            userId,
            sessionId,
            references: new Map([["input_file", { filename, version: undefined }]]),
          },
        );
      const own = { inputs: { input_file: { text: "for one user's eyes" } } };
      expect(await read("secret.txt", "user-42", "web-1")).toMatchObject({ toolResult: own });
      expect(await read("user:secret.txt", "user-42", "web-2")).toMatchObject({ toolResult: own });
      const strangers = [
        ["secret.txt", "user-42", "web-2"],
        ["secret.txt", "user-43", "web-1"],
        ["user:secret.txt", "user-43", "web-1"],
        ["secret.txt", "other/user-42", "web-1"],
        ["../user-42/web-1/secret.txt", "user-43", "web-1"],
        ["../web-1/secret.txt", "user-42", "web-2"],
      ] as const;
      for (const [filename, userId, sessionId] of strangers) {
        expect(await read(filename, userId, sessionId)).toMatchObject({
          kind: "error",
          code: "ARTIFACT_ERROR",
        });
      }
    },
  );
});

describe("of the host", () => {
  test(
    "a tool finds no variable and no command line, where the worker has secrets in its environment",
    { tags: "promise-S11" },
    async () => {
      const { whole, start, rest } = newSecret();
      await using owned = new AsyncDisposableStack();
      const base = await reachableDirectory();
      owned.defer(() => rm(base, { recursive: true, force: true }));
      const broker = owned.use(await startDevBroker());
      const manifestPath = join(base, "manifest.yaml");
      const tools = { searches: hostile("searches", { sandbox_profile: "permissive" }) };
      await writeFile(manifestPath, manifestText(tools));
      const environment = {
        ...workerEnvironment(broker, base, manifestPath, fixtureTools),
        AWS_SECRET_ACCESS_KEY: whole,
        // A path of the host that bubblewrap is told: a part of the secret, too.
        SANDBOX_WORK_DIR: join(base, whole),
      };
      const worker = owned.use(new WorkerProcess(environment));
      await worker.says("worker.ready");
      const agent = owned.use(
        await Agent.connect(
          { host: broker.host, port: broker.port, namespace },
          AbortSignal.timeout(30_000),
        ),
      );
      expect(await agent.call({ tool: "searches", args: { start, rest } })).toMatchObject({
        kind: "success",
        toolResult: { found: [] },
      });
    },
  );

  test(
    "a tool reaches no socket in the file system, and under restrictive no abstract one",
    { tags: "promise-S14" },
    async () => {
      await using owned = new AsyncDisposableStack();
      const base = await reachableDirectory();
      owned.defer(() => rm(base, { recursive: true, force: true }));
      const path = join(base, "host.sock");
      const abstract = `str-test-${randomBytes(8).toString("hex")}`;
      for (const address of [path, `\0${abstract}`]) {
        const server = owned.use(createServer((socket) => socket.destroy()));
        server.listen(address);
        await once(server, "listening");
      }
      await chmod(path, 0o777);
      await using rig = await startRig({
        tools: {
          connects: hostile("connects", { sandbox_profile: "permissive" }),
          connects_restrictive: hostile("connects", { sandbox_profile: "restrictive" }),
        },
      });
      const outcome = async (tool: string, address: string) => {
        const answer = await rig.call(tool, { path: address });
        return answer.kind === "success" ? answer.toolResult["outcome"] : answer;
      };
      expect(await outcome("connects", path)).toBe("ENOENT");
      expect(await outcome("connects_restrictive", path)).toBe("ENOENT");
      expect(await outcome("connects_restrictive", `@${abstract}`)).toBe("ECONNREFUSED");
    },
  );
});
