/**
 * Containers and images of an engine, by its API.
 */
import type { Duplex } from "node:stream";
import { z } from "zod";
import { SandboxError } from "../../sandbox.ts";
import { type EngineClient, EngineError } from "./client.ts";

const notFound = 404;
/** Not running, or being removed already. */
const conflict = 409;

const createdShape = z.object({ Id: z.string() });
const waitedShape = z.object({ StatusCode: z.number() });
const inspectedShape = z.object({
  State: z.object({ OOMKilled: z.boolean().optional(), Pid: z.number().optional() }),
});
const listedShape = z.array(
  z.object({ Id: z.string(), Labels: z.record(z.string(), z.string()).nullish() }),
);
const infoShape = z.object({
  ServerVersion: z.string(),
  MemoryLimit: z.boolean().optional(),
  PidsLimit: z.boolean().optional(),
  CpuCfsQuota: z.boolean().optional(),
  NCPU: z.number(),
  SecurityOptions: z.array(z.string()).nullish(),
  OSType: z.string(),
});

/** What an engine says of itself. */
export type EngineInfo = z.output<typeof infoShape>;

/** A container's state: `pid` is 0 where no process is. */
export interface ContainerState {
  readonly pid: number;
  readonly wasOutOfMemory: boolean;
}

/** One engine. All methods reject with SandboxError, and with the signal's reason. */
export class Engine {
  readonly #client: EngineClient;

  constructor(client: EngineClient) {
    this.#client = client;
  }

  async info(signal: AbortSignal): Promise<EngineInfo> {
    return parsed(infoShape, await this.#client.ask({ method: "GET", path: "/info" }, signal));
  }

  /** The id of an image; undefined where there is none. */
  async imageId(name: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const path = `/images/${encodeURIComponent(name)}/json`;
      return parsed(createdShape, await this.#client.ask({ method: "GET", path }, signal)).Id;
    } catch (error) {
      if (error instanceof EngineError && error.status === notFound) return undefined;
      throw error;
    }
  }

  /** Makes an image with the content of an archive, with the tag `latest`. */
  async importImage(repository: string, archive: Uint8Array, signal: AbortSignal): Promise<void> {
    const path = `/images/create?${query({ fromSrc: "-", repo: repository })}`;
    await this.#client.ask({ method: "POST", path, body: archive }, signal);
  }

  /** The new container's id. */
  async create(container: object, signal: AbortSignal): Promise<string> {
    const path = "/containers/create";
    const created = await this.#client.ask({ method: "POST", path, body: container }, signal);
    return parsed(createdShape, created).Id;
  }

  /** Input and output, from the first byte when called before `start`. The caller destroys it. */
  async attach(id: string, hasStdin: boolean, signal: AbortSignal): Promise<Duplex> {
    const streams = query({ stream: "1", stdin: hasStdin ? "1" : "0", stdout: "1", stderr: "1" });
    const path = `/containers/${id}/attach?${streams}`;
    return this.#client.hijack({ method: "POST", path }, signal);
  }

  async start(id: string, signal: AbortSignal): Promise<void> {
    await this.#client.ask({ method: "POST", path: `/containers/${id}/start` }, signal);
  }

  /** The exit code, when the container has ended. */
  async wait(id: string, signal: AbortSignal): Promise<number> {
    const path = `/containers/${id}/wait`;
    const waited = await this.#client.askUnbounded({ method: "POST", path }, signal);
    return parsed(waitedShape, waited).StatusCode;
  }

  async inspect(id: string, signal: AbortSignal): Promise<ContainerState> {
    const path = `/containers/${id}/json`;
    const inspected = await this.#client.ask({ method: "GET", path }, signal);
    const { State } = parsed(inspectedShape, inspected);
    return { pid: State.Pid ?? 0, wasOutOfMemory: State.OOMKilled ?? false };
  }

  /** Sends a signal to the first process; harmless when it has ended. */
  async kill(id: string, name: "SIGTERM" | "SIGKILL", signal: AbortSignal): Promise<void> {
    const path = `/containers/${id}/kill?${query({ signal: name })}`;
    await this.#client.ask({ method: "POST", path }, signal).catch(ifGone);
  }

  /** Kills what runs, and removes the container with all that it has; harmless when it is gone. */
  async remove(id: string, signal: AbortSignal): Promise<void> {
    const path = `/containers/${id}?${query({ force: "true", v: "true" })}`;
    await this.#client.ask({ method: "DELETE", path }, signal).catch(ifGone);
  }

  /** The containers with a label, running or not: the label's value by their ids. */
  async labelled(label: string, signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    const filters = JSON.stringify({ label: [label] });
    const path = `/containers/json?${query({ all: "true", filters })}`;
    const found = parsed(listedShape, await this.#client.ask({ method: "GET", path }, signal));
    return new Map(found.map(({ Id, Labels }) => [Id, Labels?.[label] ?? ""]));
  }
}

function parsed<Value>(shape: z.ZodType<Value>, value: unknown): Value {
  const result = shape.safeParse(value);
  if (result.success) return result.data;
  throw new SandboxError("the engine's answer has another form", { cause: result.error });
}

function query(parameters: Readonly<Record<string, string>>): string {
  return new URLSearchParams(parameters).toString();
}

function ifGone(error: unknown): void {
  const isGone = error instanceof EngineError && [notFound, conflict].includes(error.status);
  if (!isGone) throw error;
}
