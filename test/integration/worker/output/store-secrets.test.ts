/**
 * A worker's log has no credentials of its artifact store, whatever fails, at its lowest level.
 */
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import type { FaultKind } from "../../../../harness/fakes/faults.ts";
import { gcsVariables } from "../../../../harness/fakes/gcs/variables.ts";
import { s3Variables } from "../../../../harness/fakes/s3/variables.ts";
import { useFakeGcs } from "../../../support/gcs.ts";
import { useFakeS3 } from "../../../support/s3.ts";
import { WorkerProcess } from "../../../support/workers/worker-process.ts";
import { surroundWorker } from "../../../support/workers/worker-surroundings.ts";

const bucket = "artifacts";
const s3 = useFakeS3({ buckets: [bucket] });
const gcs = useFakeGcs({ buckets: [bucket] });

const tools = { saves: { function: "saves" }, saves_sparse: { function: "saves_sparse" } };

type Variables = Readonly<Record<string, string>>;

/** A store of a worker that is going to fail. */
interface FailingStore {
  readonly variables: () => Variables;
  /** What the worker cannot start with, on top of the variables. */
  readonly broken: () => readonly Variables[];
  /** Lets requests of an operation fail until the result is disposed. */
  readonly fault: (operation: never, fault: FaultKind) => Disposable;
  /** Of small and of large outputs. */
  readonly operations: readonly string[];
  readonly secrets: () => Promise<readonly string[]>;
}

const session = "session-token-of-the-worker";

const stores: Readonly<Record<string, FailingStore>> = {
  s3: {
    variables: () => ({ ...s3Variables(s3(), bucket), AWS_SESSION_TOKEN: session }),
    broken: () => [
      { AWS_SECRET_ACCESS_KEY: "wrong-secret-key" },
      { AWS_ACCESS_KEY_ID: "" },
      { ARTIFACT_S3_BUCKET: "missing" },
      { ARTIFACT_S3_ENDPOINT: "http://127.0.0.1:1" },
    ],
    fault: (operation, fault) => s3().fault({ operation, fault, times: 100 }),
    operations: ["ListObjectsV2", "PutObject", "UploadPart", "CompleteMultipartUpload"],
    secrets: () =>
      Promise.resolve([
        ...[s3().secretAccessKey, "wrong-secret-key", session],
        ...["AWS4-HMAC-SHA256", "Signature=", "uploadId="],
      ]),
  },
  gcs: {
    variables: () => gcsVariables(gcs(), bucket),
    broken: () => [
      { GOOGLE_APPLICATION_CREDENTIALS: gcs().serviceAccountFile, ARTIFACT_GCS_BUCKET: "missing" },
      { GOOGLE_APPLICATION_CREDENTIALS: "/nowhere/credentials.json" },
      { ARTIFACT_GCS_BUCKET: "missing" },
      { ARTIFACT_GCS_ENDPOINT: "http://127.0.0.1:1" },
    ],
    fault: (operation, fault) => gcs().fault({ operation, fault, times: 100 }),
    operations: ["objects.list", "objects.insert", "uploads.put", "uploads.complete"],
    secrets: async () => {
      const { private_key } = JSON.parse(await readFile(gcs().serviceAccountFile, "utf8")) as {
        private_key: string;
      };
      const { credential_source } = JSON.parse(await readFile(gcs().credentialsFile, "utf8")) as {
        credential_source: { file: string };
      };
      const provided = await readFile(credential_source.file, "utf8");
      const [, keyLine = ""] = private_key.split("\n");
      return [keyLine, provided, "fake-access-token-", "Bearer ", "upload_id="];
    },
  },
};

const faults: readonly FaultKind[] = [
  { kind: "error", status: 403, code: "InvalidAccessKeyId" },
  { kind: "error", status: 400, code: "ExpiredToken" },
  { kind: "cut request" },
];

test.for(Object.entries(stores))(
  "of the store %s",
  { tags: "full" },
  async ([, { variables, broken, fault, operations, secrets }]) => {
    const { environment, connectAgent } = await surroundWorker(tools);
    const own = { ...environment, ...variables(), LOG_LEVEL: "trace" };
    const outputs: string[] = [];
    for (const change of broken()) {
      await using worker = new WorkerProcess({ ...own, ...change });
      expect(await worker.exited).toMatchObject({ code: expect.any(Number) });
      outputs.push(worker.output);
    }
    await using worker = new WorkerProcess(own);
    await worker.says("worker.ready");
    await using agent = await connectAgent();
    for (const operation of operations) {
      for (const kind of faults) {
        using _failing = fault(operation as never, kind);
        const calls = [
          { tool: "saves", args: {} },
          { tool: "saves_sparse", args: { size: 9 * 1024 * 1024 } },
        ];
        const timeoutSeconds = 20;
        const ended = await Promise.all(
          calls.map((call) => agent.call({ ...call, timeoutSeconds, userId: "a", sessionId: "b" })),
        );
        expect(ended.map((end) => end.kind)).toContain("error");
      }
    }
    outputs.push(worker.output);
    for (const output of outputs) expect(output).toMatch(/artifact store|ARTIFACT_/);
    for (const secret of await secrets())
      expect(outputs.filter((output) => output.includes(secret))).toEqual([]);
  },
);
