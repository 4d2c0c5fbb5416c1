/**
 * Gateways that callers bring, each for one call of the invoker: users of the library, who have no
 * manifest.
 */
import type { ProgramGateway, ToolGateway } from "../gateway/gateway.ts";
import { ProxyHost } from "../gateway/proxy/host.ts";
import { type CallGateway, type Gateways, gatewayLimitsOf } from "../invocation/steps/gateway.ts";
import { withoutArtifacts } from "./without-artifacts.ts";

/** Calls find the gateways by their ids. */
export class BroughtGateways implements Gateways {
  readonly #gateways = new Map<string, ToolGateway>();
  readonly #scratchDir: string;

  /** @param scratchDir for answers that wait, see {@link ProxyHost} */
  constructor(scratchDir: string) {
    this.#scratchDir = scratchDir;
  }

  /** For the call with this id, until it is disposed. */
  bring(callId: string, gateway: ToolGateway): Disposable {
    this.#gateways.set(callId, gateway);
    return { [Symbol.dispose]: () => void this.#gateways.delete(callId) };
  }

  open({ tool, invocation, channel, slot }: Parameters<Gateways["open"]>[0]): CallGateway {
    const brought = this.#gateways.get(invocation.id);
    if (brought === undefined) throw new Error(`no gateway was brought for ${invocation.id}`);
    const over = new AbortController();
    const lending = async <Result>(call: () => Promise<Result>): Promise<Result> => {
      slot.begin();
      try {
        return await call();
      } finally {
        await slot.end(over.signal);
      }
    };
    const gateway: ProgramGateway = {
      ...withoutArtifacts(brought),
      runTool: (...given) => lending(() => brought.runTool(...given)),
      runChain: (...given) => lending(() => brought.runChain(...given)),
    };
    const { maxConcurrentCalls } = gatewayLimitsOf(tool, invocation);
    const host = new ProxyHost(channel, gateway, {
      ...{ maxConcurrentCalls, directory: this.#scratchDir },
    });
    host.open();
    const end = async () => {
      over.abort(new Error("the gateway is closed"));
      await host.close();
      return { report: undefined };
    };
    let ending: ReturnType<CallGateway["close"]> | undefined;
    const close = (): ReturnType<CallGateway["close"]> => (ending ??= end());
    return { close, [Symbol.asyncDispose]: async () => void (await close()) };
  }
}
