/**
 * A sandbox of bubblewrap's whose command has loaded the tool and waits for its call.
 */
import { type ParkedSandbox, type Sandbox, SandboxError } from "../../sandbox.ts";
import type { WaitingCommand } from "../cold-sandbox.ts";

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
    async wake(args) {
      if (state === "woken") throw new SandboxError("a parked sandbox is woken once");
      if (state === "ended") throw new SandboxError("a parked sandbox has ended");
      state = "woken";
      execution.beginCall(workDir.staged());
      execution.endBy(await channel.call(args), () => workDir.hasOutputs());
      return execution;
    },
    async [Symbol.asyncDispose]() {
      channel[Symbol.dispose]();
      await parts.owned[Symbol.asyncDispose]();
    },
  };
}
