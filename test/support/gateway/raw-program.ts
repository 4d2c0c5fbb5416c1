/**
 * A program at its end of a channel that need not keep to the protocol, and a host that serves it.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import { expect, vi } from "vitest";
import { CallBudget } from "../../../worker/gateway/budget.ts";
import { type FunctionTool, createFunctionGateway } from "../../../worker/gateway/functions.ts";
import type { ProgramGateway } from "../../../worker/gateway/gateway.ts";
import { defaultGatewayLimits } from "../../../worker/protocol/tool-calls/limits.ts";
import { type HostOptions, ProxyHost } from "../../../worker/gateway/proxy/host.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import { LineSplitter } from "../../../worker/support/text/byte-lines.ts";
import { socketPair } from "./socket-pair.ts";

/** An answer, as far as tests look at it. */
export interface Answer {
  readonly type: string;
  readonly id: string;
  readonly payload: JsonObject;
}

/** A program and its host; the receiver disposes it. */
export interface RawChannel extends AsyncDisposable {
  readonly inside: Socket;
  readonly outside: Socket;
  readonly host: ProxyHost;
  /** Writes frames, or text as it is. */
  send(...frames: readonly (object | string)[]): void;
  /** Reads until there are so many answers. */
  answers(count: number): Promise<readonly Answer[]>;
}

/** Limits that no test reaches. */
export const generous = {
  ...defaultGatewayLimits,
  ...{ maxToolCalls: 1_000_000, maxLookups: 1_000_000, maxOperationsPerSecond: 1_000_000_000 },
};

export function gatewayOf(...tools: readonly FunctionTool[]): ProgramGateway {
  return createFunctionGateway(tools, { budget: new CallBudget(generous) });
}

/** An open channel to a gateway. */
export async function rawChannel(
  gateway: ProgramGateway,
  options: HostOptions & { readonly isOpen?: boolean } = {},
): Promise<RawChannel> {
  const [inside, outside] = await socketPair();
  inside.on("error", () => undefined);
  const host = new ProxyHost(outside, gateway, options);
  if (options.isOpen !== false) host.open();
  const lines = new LineSplitter(64 * 1024 * 1024);
  const answers: Answer[] = [];
  return {
    ...{ inside, outside, host },
    send(...frames) {
      const texts = frames.map((frame) =>
        typeof frame === "string" ? frame : `${JSON.stringify(frame)}\n`,
      );
      inside.write(texts.join(""));
    },
    async answers(count) {
      if (inside.listenerCount("data") === 0) {
        inside.on("data", (chunk: Buffer) => {
          for (const line of lines.push(chunk)) {
            if (line.kind === "line") answers.push(JSON.parse(line.bytes.toString()) as Answer);
          }
        });
      }
      await vi.waitFor(() => expect(answers.length).toBeGreaterThanOrEqual(count), {
        timeout: 10_000,
      });
      return answers;
    },
    async [Symbol.asyncDispose]() {
      inside.destroy();
      await host.close();
      if (!inside.closed) await once(inside, "close");
    },
  };
}
