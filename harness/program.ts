/**
 * The command line of the harness: its commands, and exit codes of failures. Only the command that
 * is typed is loaded, which is most of the time that a quick one takes.
 */
import { inspect } from "node:util";
import { Command, CommanderError } from "commander";
import { NotDeletedError, StoreError } from "../worker/artifacts/store.ts";
import { BrokerError } from "../worker/broker/broker.ts";
import {
  CommandError,
  type Context,
  Interruption,
  UsageError,
  exit,
  withCauses,
} from "./context.ts";
import { addArtifact } from "./artifact/commands.ts";
import { addConsole, addDemo, addDev, addDevBroker } from "./dev/commands.ts";
import { addAgentYaml } from "./discovery/commands.ts";
import { addFakeGcs, addFakeS3, addSmfBroker } from "./fakes/commands.ts";
import { addInvoke, addListen } from "./invoke/commands.ts";
import { printable } from "./invoke/screen.ts";
import { packageVersion } from "./package.ts";
import { addNetwork } from "./network/commands.ts";
import { addEnv } from "./packages/commands.ts";
import { addProgram } from "./tool/programs/commands.ts";
import { addTool, addTools } from "./tool/commands.ts";

/** Runs a command line, without the program's name. Returns the exit code; never throws. */
export async function run(argv: readonly string[], context: Context): Promise<number> {
  let exitCode: number = exit.success;
  const program = createProgram(context, (code) => (exitCode = code));
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (error) {
    return explain(error, context);
  }
}

/** Tells what went wrong, and returns the exit code for it. */
function explain(error: unknown, context: Context): number {
  const { signal, err } = context;
  if (error instanceof NotDeletedError) {
    const exitCode = explain(error.cause, context);
    err.line(`version ${error.saved.version} of that artifact may exist all the same`);
    return exitCode;
  }
  if (signal.aborted && signal.reason instanceof Interruption) return signal.reason.exitCode;
  if (error instanceof CommanderError) {
    // Commander has said everything already; help and version are no failures.
    return error.exitCode === 0 ? exit.success : exit.usage;
  }
  if (error instanceof UsageError) {
    err.line(printable(`error: ${error.message}`));
    return exit.usage;
  }
  const isForeseen = [CommandError, BrokerError].some((kind) => error instanceof kind);
  const text =
    error instanceof StoreError
      ? // What callers of a worker must not know, the user of the store has to.
        withCauses(error).join("\n  because: ")
      : isForeseen && error instanceof Error
        ? error.message
        : inspect(error);
  err.line(printable(`error: ${text}`));
  return exit.failure;
}

function createProgram(context: Context, finish: (exitCode: number) => void): Command {
  const program = new Command("harness")
    .description("What stands on the other side of a worker's broker: calls its tools and listens.")
    .version(packageVersion())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.out.write(text),
      writeErr: (text) => context.err.write(text),
    })
    .showHelpAfterError("(--help shows what is accepted)");
  addInvoke(program, context, finish);
  addDevBroker(program, context, finish);
  addSmfBroker(program, context, finish);
  addFakeS3(program, context, finish);
  addFakeGcs(program, context, finish);
  addListen(program, context, finish);
  addDemo(program, context, finish);
  addDev(program, context, finish);
  addConsole(program, context, finish);
  addTool(program, context, finish);
  addTools(program, context, finish);
  addProgram(program, context, finish);
  addAgentYaml(program, context, finish);
  addArtifact(program, context, finish);
  addEnv(program, context, finish);
  addNetwork(program, context, finish);
  return program;
}
