/**
 * The variables with which worker and harness use a server as their artifact store.
 */
import type { FakeGcs } from "./server.ts";

/** By name. Everybody may know the credentials. */
export function gcsVariables(server: FakeGcs, bucket: string): Readonly<Record<string, string>> {
  return {
    ARTIFACT_SERVICE_TYPE: "gcs",
    ARTIFACT_GCS_BUCKET: bucket,
    ARTIFACT_GCS_ENDPOINT: server.endpoint,
    GOOGLE_APPLICATION_CREDENTIALS: server.credentialsFile,
  };
}
