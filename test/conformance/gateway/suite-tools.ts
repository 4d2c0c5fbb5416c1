/**
 * The tools that every gateway of the suite serves.
 */
import type { FunctionTool } from "../../../worker/gateway/functions.ts";
import { GatewayError } from "../../../worker/gateway/gateway.ts";
import type { GatewayLimits } from "../../../worker/protocol/tool-calls/limits.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";

/** What the gateway under test allows. */
export const allowed = ["math:*", "text:*", "plain"];

const numbers: JsonObject = {
  type: "object",
  properties: { a: { type: "number" }, b: { type: "number" } },
  required: ["a", "b"],
};

/** The tools, with what happened to them. */
export class SuiteTools {
  readonly called: string[] = [];
  /** Calls of `text:wait` that run. */
  waiting = 0;

  readonly list: readonly FunctionTool[] = [
    {
      id: "math:add",
      description: "Add two numbers.\n\nOf any size.",
      tags: ["arithmetic"],
      parameters: numbers,
      returns: { type: "object", properties: { sum: { type: "number" } } },
      examples: [
        { title: "Small", description: "One and two", args: { a: 1, b: 2 }, resultHint: "3" },
        { description: "Zeros", args: { a: 0, b: 0 } },
      ],
      run: ({ a, b, previous }) => {
        this.called.push("math:add");
        const before = (previous as { sum: number } | undefined)?.sum ?? 0;
        return { sum: (a as number) + (b as number) + before };
      },
    },
    {
      id: "math:fail",
      description: "Fail at once",
      run: () => {
        this.called.push("math:fail");
        throw new GatewayError("TOOL_ERROR", "execute", "It failed", {
          data: { why: "it does" },
          retryable: true,
        });
      },
    },
    {
      id: "text:echo",
      description: "Give the arguments back, as a parrot does",
      tags: ["mirror", "debug"],
      run: (args) => ({ args }),
    },
    {
      id: "text:scribble",
      description: "Change its arguments",
      run: (args) => {
        (args["list"] as number[]).push(4);
        return Object.assign(args, { isChanged: true });
      },
    },
    {
      id: "text:wait",
      description: "Wait until it is stopped",
      run: async (_args, signal) => {
        this.waiting++;
        try {
          const stopped = Promise.withResolvers<never>();
          signal.addEventListener("abort", () => stopped.reject(new Error("stopped")));
          return await stopped.promise;
        } finally {
          this.waiting--;
        }
      },
    },
    { id: "plain", description: "A tool without a namespace", run: () => ({ plain: null }) },
    {
      id: "hidden:add",
      description: "Add numbers where nobody sees it",
      run: () => {
        this.called.push("hidden:add");
        return {};
      },
    },
  ];
}

/** What a test of the suite changes. */
export interface GatewaySetup {
  readonly tools: SuiteTools;
  readonly limits: GatewayLimits;
}
