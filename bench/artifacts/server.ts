/**
 * A server of the harness in a process of its own, as a store has it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const cli = fileURLToPath(new URL("../../harness/cli.ts", import.meta.url));

/** The variables that every server prints last. */
const lastVariables: Readonly<Record<string, string>> = { "fake-s3": "AWS_SECRET_ACCESS_KEY" };

/** Disposing ends it. */
export interface FakeServer extends AsyncDisposable {
  /** With which worker and SDK use it. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Starts `harness fake-s3` or its like, and takes the credentials into this process. */
export async function startFake(command: string): Promise<FakeServer> {
  const child = spawn(process.execPath, [cli, command, "--port", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const variables = await readVariables(child, lastVariables[command] ?? "");
  Object.assign(process.env, variables);
  return {
    variables,
    async [Symbol.asyncDispose]() {
      child.kill();
      await once(child, "exit");
    },
  };
}

async function readVariables(
  { stdout }: ChildProcess,
  last: string,
): Promise<Readonly<Record<string, string>>> {
  const variables: Record<string, string> = {};
  if (stdout === null) return variables;
  for await (const line of createInterface(stdout)) {
    const [, name, value] = /^export (\w+)=(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    variables[name] = value;
    if (name === last) return variables;
  }
  throw new Error("the server of the benchmark did not start");
}
