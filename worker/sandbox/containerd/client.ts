/**
 * containerd's client `ctr`, in one namespace.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { SandboxError } from "../sandbox.ts";
import type { ContainerdSettings } from "./settings.ts";

const run = promisify(execFile);

/** Milliseconds that one request to containerd may take. */
const requestTimeoutMs = 30_000;
/** Bytes that the client may say of one request. */
const maxAnswerBytes = 1024 * 1024;

/** A client. The namespace need not exist. */
export class ContainerdClient {
  readonly namespace: string;
  readonly #settings: ContainerdSettings;

  constructor(settings: ContainerdSettings, namespace: string) {
    this.#settings = settings;
    this.namespace = namespace;
  }

  /** The same in another namespace. */
  in(namespace: string): ContainerdClient {
    return new ContainerdClient(this.#settings, namespace);
  }

  /** The command line for a request. */
  command(...args: readonly string[]): readonly string[] {
    const { ctrBin, address } = this.#settings;
    return [ctrBin, "--address", address, "--namespace", this.namespace, ...args];
  }

  /** What the client prints. Rejects with SandboxError, or the signal's reason. */
  async ask(args: readonly string[], signal?: AbortSignal): Promise<string> {
    const [file = "", ...argv] = this.command(...args);
    try {
      const bounds = { timeout: requestTimeoutMs, maxBuffer: maxAnswerBytes, env: {} };
      return (await run(file, argv, { ...bounds, ...(signal && { signal }) })).stdout;
    } catch (error) {
      signal?.throwIfAborted();
      throw new SandboxError(`containerd does not answer ${args.slice(0, 2).join(" ")}`, {
        cause: error,
        setting: "containerd",
      });
    }
  }

  /** Ends a container and forgets it, as far as there is one. */
  async remove(id: string): Promise<void> {
    await this.ask(["tasks", "delete", "--force", id]).catch(() => undefined);
    await this.ask(["containers", "delete", id]).catch(() => undefined);
  }

  /**
   * Ends all containers of the namespace, and removes it; harmless when another process does, too.
   * Rejects with SandboxError.
   */
  async removeAll(): Promise<void> {
    const ids = (await this.ask(["containers", "list", "--quiet"])).split("\n").filter(Boolean);
    await Promise.all(ids.map((id) => this.remove(id)));
    await this.ask(["namespaces", "remove", this.namespace]).catch((error: SandboxError) => {
      if (!String(error.cause).includes("not found")) throw error;
    });
  }
}
