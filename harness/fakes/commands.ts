/**
 * The command lines of the doubles of brokers and stores: `harness smf-broker`, `fake-s3` and
 * `fake-gcs`.
 */
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { parseNonEmpty, parsePort } from "../options/option-values.ts";
import { hostOption, portOption } from "../options/options.ts";
import type { FakeGcsCommandOptions } from "./gcs/command.ts";
import type { FakeS3CommandOptions } from "./s3/command.ts";
import type { SmfBrokerCommandOptions } from "./solace/command.ts";

/** Adds `smf-broker`. */
export function addSmfBroker(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("smf-broker")
    .description(
      "Run a Solace broker for tests until Ctrl-C, and show who subscribes and consumes. It checks no passwords.",
    )
    .addOption(hostOption())
    .addOption(portOption())
    .option(
      "--ws-port <port>",
      "listen for WebSockets too, on this port; 0 takes a free one",
      parsePort,
    )
    .option("--tls-cert <file>", "speak TLS, with the certificate in this PEM file", parseNonEmpty)
    .option("--tls-key <file>", "its key", parseNonEmpty)
    .addHelpText("after", "\nExample:\n  harness smf-broker --port 55554")
    .action(async (options: SmfBrokerCommandOptions) => {
      const { runSmfBroker } = await import("./solace/command.ts");
      finish(await runSmfBroker(options, context));
    });
}

/** Adds `fake-s3`. */
export function addFakeS3(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("fake-s3")
    .description("Run an S3 server for trials until Ctrl-C, with one bucket in memory.")
    .option("--port <port>", "port it listens on; 0 takes a free one", parsePort, 9000)
    .option("--bucket <name>", "the bucket", parseNonEmpty, "artifacts")
    .option("--without-conditions", "ignore If-None-Match and If-Match, as old servers do", false)
    .addHelpText("after", "\nExample:\n  harness fake-s3 --port 9000")
    .action(async (options: FakeS3CommandOptions) => {
      const { runFakeS3 } = await import("./s3/command.ts");
      finish(await runFakeS3(options, context));
    });
}

/** Adds `fake-gcs`. */
export function addFakeGcs(
  program: Command,
  context: Context,
  finish: (exitCode: number) => void,
): void {
  program
    .command("fake-gcs")
    .description("Run a Cloud Storage server for trials until Ctrl-C, with one bucket in memory.")
    .option("--port <port>", "port it listens on; 0 takes a free one", parsePort, 9001)
    .option("--bucket <name>", "the bucket", parseNonEmpty, "artifacts")
    .addHelpText("after", "\nExample:\n  harness fake-gcs --port 9001")
    .action(async (options: FakeGcsCommandOptions) => {
      const { runFakeGcs } = await import("./gcs/command.ts");
      finish(await runFakeGcs(options, context));
    });
}
