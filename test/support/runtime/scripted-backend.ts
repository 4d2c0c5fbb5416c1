/**
 * A backend whose code is a list of steps as JSON: nothing is evaluated.
 */
import type { ChainStep, ToolGateway } from "../../../worker/gateway/gateway.ts";
import { type BackendDefinition, defineBackend } from "../../../worker/runtime/api/backend.ts";
import { RuntimeError, type RuntimeErrorCode } from "../../../worker/runtime/api/errors.ts";
import type { Json, JsonObject } from "../../../worker/support/json/json.ts";

/** What code does, one after the other. */
export type Step =
  | readonly ["print", string]
  /** The value is that of the last of these. */
  | readonly ["value", Json]
  | readonly ["call", string, JsonObject]
  | readonly ["chain", readonly ChainStep[]]
  | readonly ["describe", string]
  /** So many calls at once. */
  | readonly ["calls", number, string, JsonObject]
  /** A call whose result nobody awaits. */
  | readonly ["forget", string, JsonObject]
  | readonly ["letters", number]
  | readonly ["metadata"]
  | readonly ["fail", RuntimeErrorCode, JsonObject]
  | readonly ["throw"]
  /** Waits until it is aborted. */
  | readonly ["wait"];

export const codeOf = (...steps: readonly Step[]): string => JSON.stringify(steps);

/** What happens to executions. */
export type OnEvent = (event: "started" | "ended" | "aborted") => void;

export function scriptedDefinition(onEvent: OnEvent = () => undefined): BackendDefinition {
  return {
    kind: "scripted",
    languages: ["steps", "more steps"],
    readiness: "beta",
    details: { version: "1" },
    evidence: { memory: "kernel" },
    async run({ code, gateway, metadata, limits }, signal) {
      onEvent("started");
      let stdout = "";
      let value: Json = null;
      try {
        for (const step of JSON.parse(code) as Step[]) {
          if (step[0] === "print") stdout += step[1];
          else if (step[0] === "wait") await aborted(signal);
          else if (step[0] === "metadata") value = { metadata, limits } as never;
          else value = await valueOf(step, gateway, signal);
        }
        return { value, stdout, stderr: "", details: { steps: 1 } };
      } catch (error) {
        if (signal.aborted) onEvent("aborted");
        if (error instanceof RuntimeError) throw error;
        if (!signal.aborted && kindOf(error) !== "GatewayError") throw error;
        const options = { detail: String(error), partial: { stdout, stderr: "" }, cause: error };
        throw new RuntimeError("EXECUTION_FAILED", options);
      } finally {
        onEvent("ended");
      }
    },
  };
}

async function valueOf(step: Step, gateway: ToolGateway, signal: AbortSignal): Promise<Json> {
  switch (step[0]) {
    case "value":
      return step[1];
    case "letters":
      return "x".repeat(step[1]);
    case "call":
      return { ...(await gateway.runTool(step[1], step[2], signal)) };
    case "chain":
      return { ...(await gateway.runChain(step[1], signal)) } as never;
    case "describe":
      return { ...(await gateway.describeTool(step[1], "full", signal)) } as never;
    case "calls": {
      const [, count, id, args] = step;
      const calls = Array.from({ length: count }, (_, index) =>
        gateway.runTool(id, { ...args, index }, signal),
      );
      return (await Promise.all(calls)).map(({ structured }) => structured);
    }
    case "forget":
      void gateway.runTool(step[1], step[2], signal).catch(() => undefined);
      return null;
    case "fail":
      throw new RuntimeError(step[1], step[2]);
    default:
      throw new Error("a secret of the far side");
  }
}

export const scriptedBackend = (onEvent?: OnEvent) => defineBackend(scriptedDefinition(onEvent));

function kindOf(error: unknown): string {
  return error instanceof Error ? error.name : "";
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(new Error("stopped"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
  });
}
