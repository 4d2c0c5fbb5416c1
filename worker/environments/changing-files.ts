/**
 * Follows the requirements files and lockfiles of tools, which change without the manifest.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { Clock } from "../support/clock.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";
import { EnvironmentError, type EnvironmentPlan } from "./environments.ts";

/** Milliseconds between two looks at the files. */
const filesPollMs = 5_000;

/** What they are followed with. */
export interface ChangingFilesOptions {
  readonly clock: Clock;
  readonly log: EventLog<"info" | "warn">;
  /** Replaces the constant of this file. */
  readonly filesPollMs?: number | undefined;
}

/** What is done about changes. */
export interface ChangingFilesOwner {
  /** What a tool needs now. Throws EnvironmentError. */
  planOf(tool: ToolEntry): Promise<EnvironmentPlan>;
  /** The newest entries whose file could be used, with a file that may change. */
  usable(): readonly ToolEntry[];
  /** Takes what a tool of `usable` needs now. */
  change(tool: ToolEntry, plan: EnvironmentPlan, signal: AbortSignal): Promise<void>;
  /** A refused tool has to be asked about again. */
  askAgain(): void;
}

/** A tool that is refused, as its file cannot be used. */
interface RefusedFile {
  readonly tool: ToolEntry;
  readonly reason: string;
}

/** The files of a worker's tools. The owner disposes it. */
export class ChangingFiles implements AsyncDisposable {
  readonly #options: ChangingFilesOptions;
  readonly #owner: ChangingFilesOwner;
  readonly #closing = new AbortController();
  readonly #refused = new Map<string, RefusedFile>();
  /** By the name of the tool: what the log has of its file. */
  readonly #reported = new Map<string, string>();
  #following: Promise<void> | undefined;

  constructor(options: ChangingFilesOptions, owner: ChangingFilesOwner) {
    this.#options = options;
    this.#owner = owner;
  }

  /** Follows the files of `usable`, and those of refused tools, until the disposal. */
  follow(): void {
    this.#following ??= this.#follow().catch(() => undefined);
  }

  /** Follows the file of a tool that is refused for this reason. */
  refuse(tool: ToolEntry, reason: string): void {
    this.#refused.set(tool.name, { tool, reason });
    this.follow();
  }

  /** Forgets that a tool was refused. */
  forget(name: string): void {
    this.#refused.delete(name);
  }

  /** Forgets refused tools but these. */
  retain(isWanted: (tool: ToolEntry) => boolean): void {
    for (const [name, { tool }] of this.#refused) if (!isWanted(tool)) this.#refused.delete(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the worker is closing"));
    await this.#following;
  }

  async #follow(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    for (;;) {
      await clock.sleep(this.#options.filesPollMs ?? filesPollMs, signal);
      for (const refused of [...this.#refused.values()]) await this.#lookAgain(refused, signal);
      for (const tool of this.#owner.usable())
        if (!this.#refused.has(tool.name)) this.#report(tool, await this.#change(tool, signal));
    }
  }

  async #lookAgain(refused: RefusedFile, signal: AbortSignal): Promise<void> {
    const { tool } = refused;
    const reason = await this.#owner.planOf(tool).then(() => undefined, reasonOf);
    signal.throwIfAborted();
    // Its entry may have changed meanwhile.
    if (reason === refused.reason || this.#refused.get(tool.name) !== refused) return;
    this.#refused.delete(tool.name);
    this.#owner.askAgain();
  }

  /** Why the file of a tool cannot be used, or undefined. Rejects only with the signal's reason. */
  async #change(tool: ToolEntry, signal: AbortSignal): Promise<string | undefined> {
    try {
      await this.#owner.change(tool, await this.#owner.planOf(tool), signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return reasonOf(error);
    }
  }

  #report(tool: ToolEntry, reason: string | undefined): void {
    if (reason !== undefined && reason !== this.#reported.get(tool.name))
      logEvent(this.#options.log, "packages.files_unusable", { tool: tool.name, reason });
    this.#reported.set(tool.name, reason ?? "");
  }
}

function reasonOf(error: unknown): string {
  return error instanceof EnvironmentError ? error.explained : `not checked: ${String(error)}`;
}
