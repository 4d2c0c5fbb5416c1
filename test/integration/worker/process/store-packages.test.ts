/**
 * Which packages a worker loads for its artifact store: the SDK of a cloud only for that cloud.
 */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { namespace } from "../../../support/workers/rig.ts";
import { WorkerProcess } from "../../../support/workers/worker-process.ts";

const printPackages = fileURLToPath(
  new URL("../../../support/workers/print-packages.mjs", import.meta.url),
);

const cloudPackages = /^(?:@aws-sdk|@smithy|@google-cloud|google-auth-library|gaxios)\b/;

/** Packages of clouds that a worker with this store has loaded when it has opened the store. */
async function cloudPackagesOf(kind: string): Promise<readonly string[]> {
  await using worker = new WorkerProcess(
    {
      NODE_OPTIONS: `--import=${printPackages}`,
      SAM_NAMESPACE: namespace,
      DEV_BROKER_HOST: "127.0.0.1",
      ARTIFACT_SERVICE_TYPE: kind,
      ARTIFACT_BASE_PATH: "/nonexistent/artifacts",
      ARTIFACT_GCS_BUCKET: "artifacts",
      ARTIFACT_GCS_ENDPOINT: "http://127.0.0.1:9",
      ARTIFACT_S3_BUCKET: "artifacts",
      ARTIFACT_S3_ENDPOINT: "http://127.0.0.1:9",
      AWS_ACCESS_KEY_ID: "key",
      AWS_SECRET_ACCESS_KEY: "secret",
    },
    ["--check"],
  );
  await worker.exited;
  const packages = [...worker.output.matchAll(/^package (.+)$/gm)].map(([, name = ""]) => name);
  expect(packages).toContain("zod");
  return packages.filter((name) => cloudPackages.test(name));
}

test.for(["memory", "filesystem"])("the store %s loads no SDK", { tags: "full" }, async (kind) => {
  expect(await cloudPackagesOf(kind)).toEqual([]);
});

const title = "the store %s loads %s, and not %s";
const loadsItsOwn = async ([kind, own, other]: readonly [
  string,
  string,
  string,
]): Promise<void> => {
  const packages = await cloudPackagesOf(kind);
  expect(packages).toContain(own);
  expect(packages).not.toContain(other);
};
const kinds = [
  ["s3", "@aws-sdk/client-s3", "@google-cloud/storage"],
  ["gcs", "@google-cloud/storage", "@aws-sdk/client-s3"],
] as const;
test.for(kinds)(title, { tags: "full" }, loadsItsOwn);
