/**
 * A sandbox of bubblewrap's whose command has loaded the tool and waits for its call.
 */
import { abortable } from "../../../support/timeout.ts";
import { type ParkedSandbox, type Sandbox, SandboxError } from "../../sandbox.ts";
import type { WaitingCommand } from "../cold-sandbox.ts";

const neverAborts = new AbortController().signal;

/** What a parked sandbox is made of. */
export interface ParkedParts {
  readonly sandbox: Pick<
    Sandbox,
    "workDir" | "limits" | "enforcement" | "unenforced" | "networkUsage" | "connections"
  >;
  readonly command: WaitingCommand;
  readonly privateBytes: number;
  /** The sandbox and the command. */
  readonly owned: AsyncDisposable;
}

/** Makes it of a command that is ready. */
export function parkedSandbox(parts: ParkedParts): ParkedSandbox {
  const { execution, channel } = parts.command;
  const { workDir, limits, enforcement, unenforced, networkUsage, connections } = parts.sandbox;
  let state: "idle" | "woken" | "ended" = "idle";
  execution.stage(() => workDir.staged());
  const end = (): void => {
    if (state === "idle") state = "ended";
  };
  return {
    backend: "bubblewrap",
    workDir,
    limits,
    enforcement,
    unenforced,
    networkUsage,
    connections,
    privateBytes: parts.privateBytes,
    lost: execution.exited.then(end, end),
    // Everything is mounted where it is called.
    locate: (insidePath) => insidePath,
    async wake(args, signal = neverAborts) {
      if (state === "woken") throw new SandboxError("a parked sandbox is woken once");
      if (state === "ended") throw new SandboxError("a parked sandbox has ended");
      state = "woken";
      const called = execution.beginCall(workDir.staged(), () => channel.call(args));
      const callEnd = await abortable(called, signal);
      // The ends of connections are told before that of the call.
      execution.endBy(callEnd, () => workDir.hasOutputs() || (connections?.open ?? 0) > 0);
      return execution;
    },
    async [Symbol.asyncDispose]() {
      channel[Symbol.dispose]();
      await parts.owned[Symbol.asyncDispose]();
    },
  };
}
