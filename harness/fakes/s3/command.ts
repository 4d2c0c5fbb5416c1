/**
 * `harness fake-s3`: an S3 server for trials.
 */
import type { Context } from "../../context.ts";
import { serveFakeStore } from "../store-command.ts";
import { startFakeS3 } from "./server.ts";
import { s3Variables } from "./variables.ts";

/** The command line. */
export interface FakeS3CommandOptions {
  readonly port: number;
  readonly bucket: string;
  /** Whether the server keeps no conditions. */
  readonly withoutConditions: boolean;
}

/** Serves one bucket until the context's signal. Throws CommandError when it cannot listen. */
export function runFakeS3(options: FakeS3CommandOptions, context: Context): Promise<number> {
  const { port, bucket, withoutConditions: ignoresConditions } = options;
  return serveFakeStore(
    {
      title: "S3 server",
      port,
      start: (port) => startFakeS3({ port, buckets: [bucket], ignoresConditions }),
      variablesOf: (server) => s3Variables(server, bucket),
    },
    context,
  );
}
