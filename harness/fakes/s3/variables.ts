/**
 * The variables with which worker and harness use a server as their artifact store.
 */
import type { FakeS3 } from "./server.ts";

/** By name. Everybody may know the credentials. */
export function s3Variables(server: FakeS3, bucket: string): Readonly<Record<string, string>> {
  return {
    ARTIFACT_SERVICE_TYPE: "s3",
    ARTIFACT_S3_BUCKET: bucket,
    ARTIFACT_S3_ENDPOINT: server.endpoint,
    ARTIFACT_S3_PATH_STYLE: "1",
    AWS_REGION: server.region,
    AWS_ACCESS_KEY_ID: server.accessKeyId,
    AWS_SECRET_ACCESS_KEY: server.secretAccessKey,
  };
}
