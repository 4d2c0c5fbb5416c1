/**
 * The edge of the process: environment, streams, signals, exit code. Imports the rest lazily.
 */
import { packageVersion } from "./config/version.ts";
import { runBehindInit } from "./init.ts";
import { closeInheritedDescriptors } from "./support/inherited-descriptors.ts";

async function main(argv: readonly string[]): Promise<number> {
  runBehindInit(process.env);
  if (argv.length === 1 && argv[0] === "--version") {
    process.stdout.write(`${packageVersion()}\n`);
    return 0;
  }
  const { run } = await import("./command-line.ts");
  return run(argv, {
    environment: process.env,
    out: process.stdout,
    err: process.stderr,
    onSignal: (listener) => {
      for (const signal of ["SIGTERM", "SIGINT"] as const)
        process.on(signal, () => listener(signal));
    },
    exitNow: (code) => process.exit(code),
    closeInheritedDescriptors,
  });
}

process.exitCode = await main(process.argv.slice(2));
