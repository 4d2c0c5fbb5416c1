/**
 * Sandboxes and commands of one test each.
 */
import { type TestContext, expect, onTestFinished, vi } from "vitest";
import type {
  ExitReport,
  Sandbox,
  SandboxBackend,
  SandboxRequest,
} from "../../../worker/sandbox/sandbox.ts";
import {
  commandLines,
  never,
  outputFile,
  processesWith,
  request,
  runScript,
  shell,
  type uniqueSleep,
} from "../../integration/sandbox/sandbox-host.ts";
import { patience } from "../../support/patience.ts";
import type { Open } from "../../support/shared.ts";

/** Opens a backend; see `describeSandboxBackend`. */
export type Create = Open<SandboxBackend>;

/** The backend that the tests share. */
export type OpenBackend = (context: TestContext) => Promise<SandboxBackend>;

/** What may differ between backends. */
export interface SandboxBackendTraits {
  /**
   * What runs inside sees neither the host's processes and private files, nor those of other
   * sandboxes.
   */
  readonly isolates: boolean;
  /** Whether commands can have a standard input; idle ones wait on it for their call. */
  readonly hasStdin: boolean;
  /**
   * Where commands are no processes of the host: what the command lines of the processes behind a
   * sandbox name, and no others'.
   */
  readonly nameOnHost?: (sandbox: Sandbox) => string;
}

export const waitForever = "while :; do sleep 0.05; done";

/** Runs a script in a sandbox of its own and gives that back. */
export async function run(
  backend: SandboxBackend,
  script: string,
  changes: Partial<SandboxRequest> = {},
): Promise<ExitReport> {
  await using sandbox = await backend.acquire(request(changes), never);
  return await runScript(sandbox, script);
}

/** A sandbox in which a script has said that it is running. */
export async function startReady(backend: SandboxBackend, script: string) {
  const sandbox = await backend.acquire(request(), never);
  onTestFinished(() => sandbox[Symbol.asyncDispose]());
  const execution = await sandbox.start(shell(script));
  await outputFile(sandbox, "ready");
  return { sandbox, execution };
}

/** A command of `uniqueSleep`. */
type Unique = ReturnType<typeof uniqueSleep>;

/**
 * Waits until the command runs, and not only the shell that was told of it; where the host does not
 * show it, until its sandbox does.
 */
export async function runs(
  { marker, command }: Unique,
  sandbox: Sandbox,
  traits: SandboxBackendTraits,
): Promise<void> {
  if (traits.nameOnHost !== undefined) {
    await vi.waitFor(async () => {
      expect(await left(marker, sandbox, traits)).not.toEqual([]);
    }, patience);
    return;
  }
  const commandLine = `${command.replaceAll(" ", "\0")}\0`;
  await vi.waitFor(
    async () => expect([...(await commandLines()).values()]).toContain(commandLine),
    patience,
  );
}

/** Ids of the processes that are left of a command with a marker in a sandbox. */
export function left(
  marker: string,
  sandbox: Sandbox,
  { nameOnHost }: SandboxBackendTraits,
): Promise<number[]> {
  return processesWith(nameOnHost?.(sandbox) ?? marker);
}
