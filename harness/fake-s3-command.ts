/**
 * `harness fake-s3`: an S3 server for trials, until a signal ends it.
 */
import { once } from "node:events";
import { CommandError, type Context, exit } from "./context.ts";
import type { FakeS3 } from "./fakes/s3/server.ts";

/** The command line. */
export interface FakeS3CommandOptions {
  readonly port: number;
  readonly bucket: string;
  /** Whether the server keeps no conditions. */
  readonly withoutConditions: boolean;
}

/**
 * Serves one bucket on loopback until the context's signal; that is its regular end. Throws
 * CommandError when it cannot listen.
 */
export async function runFakeS3(
  options: FakeS3CommandOptions,
  { out, signal }: Context,
): Promise<number> {
  await using server = await listen(options);
  const { bucket } = options;
  // Every other command does without.
  const { s3Variables } = await import("./fakes/s3/variables.ts");
  out.line(
    `S3 server listens on ${server.endpoint}; its objects end with it. For worker and harness:`,
  );
  for (const [name, value] of Object.entries(s3Variables(server, bucket)))
    out.line(`export ${name}=${value}`);
  if (!signal.aborted) await once(signal, "abort");
  return exit.success;
}

/** Throws CommandError when the port cannot be listened on. */
async function listen({ port, ...options }: FakeS3CommandOptions): Promise<FakeS3> {
  const { startFakeS3 } = await import("./fakes/s3/server.ts");
  try {
    const { bucket, withoutConditions: ignoresConditions } = options;
    return await startFakeS3({ port, buckets: [bucket], ignoresConditions });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    const hint = code === "EADDRINUSE" ? "; port 0 takes a free one" : "";
    throw new CommandError(`cannot listen on 127.0.0.1:${port}: ${code}${hint}`, { cause: error });
  }
}
