/**
 * `harness fake-gcs`: a server of Google Cloud Storage for trials.
 */
import type { Context } from "../../context.ts";
import { serveFakeStore } from "../store-command.ts";
import { startFakeGcs } from "./server.ts";
import { gcsVariables } from "./variables.ts";

/** The command line. */
export interface FakeGcsCommandOptions {
  readonly port: number;
  readonly bucket: string;
}

/** Serves one bucket until the context's signal. Throws CommandError when it cannot listen. */
export function runFakeGcs(
  { port, bucket }: FakeGcsCommandOptions,
  context: Context,
): Promise<number> {
  return serveFakeStore(
    {
      title: "Cloud Storage server",
      port,
      start: (port) => startFakeGcs({ port, buckets: [bucket] }),
      variablesOf: (server) => gcsVariables(server, bucket),
    },
    context,
  );
}
