/**
 * Requests to a Docker engine by `node:http` and nothing else: what the adapter is compared with.
 */
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const apiVersion = "v1.41";
const firstFailure = 400;
/** Milliseconds between two looks at an engine that is still removing. */
const lookEveryMs = 5;
/** Milliseconds after which somebody should see what is wrong. */
const emptyTimeoutMs = 60_000;

/** One engine. All methods reject for a refusal, with what the engine said. */
export class Engine {
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** The new container's id. */
  async create(container: object): Promise<string> {
    const { Id } = (await this.#ask("POST", "/containers/create", container)) as { Id: string };
    return Id;
  }

  async start(id: string): Promise<void> {
    await this.#ask("POST", `/containers/${id}/start`);
  }

  /** The exit code. */
  async wait(id: string): Promise<number> {
    const waited = (await this.#ask("POST", `/containers/${id}/wait`)) as { StatusCode: number };
    return waited.StatusCode;
  }

  async remove(id: string): Promise<void> {
    await this.#ask("DELETE", `/containers/${id}?force=true&v=true`);
  }

  /** Describes the one container that there is. */
  async inspectOnly(): Promise<Inspected> {
    const [only, ...others] = await this.#list();
    if (only === undefined || others.length > 0) throw new Error("there is not one container");
    return (await this.#ask("GET", `/containers/${only.Id}/json`)) as Inspected;
  }

  /** Fulfils when there is no container. */
  async empty(): Promise<void> {
    const lateMs = performance.now() + emptyTimeoutMs;
    while ((await this.#list()).length > 0) {
      if (performance.now() > lateMs) throw new Error("containers are not removed");
      await sleep(lookEveryMs);
    }
  }

  async #list(): Promise<readonly { readonly Id: string }[]> {
    const listed = await this.#ask("GET", "/containers/json?all=true");
    return listed as readonly { readonly Id: string }[];
  }

  #ask(method: string, path: string, body?: object): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const options = { socketPath: this.#socketPath, method, path: `/${apiVersion}${path}` };
    const headers = { Host: "docker", "Content-Type": "application/json" };
    const sent = request({ ...options, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("error", reject).on("end", () => {
        if ((response.statusCode ?? 0) >= firstFailure) reject(new Error(`${path}: ${text}`));
        else resolve(text === "" ? undefined : JSON.parse(text));
      });
    });
    sent.on("error", reject).end(body && JSON.stringify(body));
    return promise;
  }
}

/** A container as the engine describes it: what it was created with. */
export interface Inspected {
  readonly Config: object;
  readonly HostConfig: { readonly Mounts: readonly { readonly Target: string }[] };
}
