/**
 * The descriptions of a worker's tools: each is made once for the same code, and kept.
 */
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import { fingerprintCode } from "../pool/code/fingerprint.ts";
import { entryKey } from "../pool/keys.ts";
import type { StartParts } from "../pool/cold-starts.ts";
import type { ToolDescription } from "../protocol/discovery/tool-description.ts";
import type { ToolRunner } from "../runners/runner.ts";
import type { Profile } from "../sandbox/profile.ts";
import type { JsonObject } from "../support/json/json.ts";
import { Semaphore } from "../support/semaphore.ts";
import { abortable } from "../support/timeout.ts";
import { describeTool, describeTools } from "./describe.ts";
import type { KeptDescriptions } from "./kept.ts";
import { SharedNext } from "./shared-next.ts";

/** Tools that are described at a time; others wait. */
const maxConcurrent = 2;

/** What descriptions are made with. */
export interface DescriptionsOptions {
  readonly starts: StartParts;
  /** The profile of a tool's calls. */
  readonly profileOf: (tool: ToolEntry) => Profile;
  /** The tool runner of a language, which decides descriptions, too; undefined for none. */
  readonly runnerDirOf: (runtime: Runtime) => string | undefined;
  /** Undefined to describe every time. */
  readonly kept: KeptDescriptions | undefined;
}

/** Describes tools by their present code. */
export class Descriptions {
  readonly #options: DescriptionsOptions;
  readonly #slots = new Semaphore({ capacity: maxConcurrent, maxWaiting: Infinity });
  readonly #fingerprints = new Map<Runtime, SharedNext<string | undefined>>();

  constructor(options: DescriptionsOptions) {
    this.#options = options;
  }

  /**
   * Describes a tool, or finds what was kept of the same code, entry and interpreter. Throws
   * InvocationError, whose message is public, and the signal's reason.
   *
   * @param toolConfig for class tools that make something of it. It may hold secrets: nothing is
   *   kept of it
   */
  async describe(
    tool: ToolEntry,
    signal: AbortSignal,
    toolConfig: JsonObject = {},
  ): Promise<ToolDescription> {
    const { starts, profileOf } = this.#options;
    const isPlain = Object.keys(toolConfig).length === 0;
    const facts = isPlain ? await this.#factsOf(tool, signal) : undefined;
    const known = await this.#find(facts);
    if (known !== undefined) return known;
    using _slot = await this.#slots.acquire(signal);
    // Another request may have described it meanwhile.
    const made = await this.#find(facts);
    if (made !== undefined) return made;
    const request = { tool, profile: profileOf(tool), toolConfig };
    const described = await describeTool(starts, request, signal);
    if (facts !== undefined) await this.#options.kept?.keep(facts, described);
    return described;
  }

  /** Describes all tools of an entry, as {@link describeTools}; nothing of it is kept. */
  async describeAll(
    tool: ToolEntry,
    signal: AbortSignal,
    toolConfig: JsonObject = {},
  ): Promise<ReadonlyMap<string, ToolDescription>> {
    const { starts, profileOf } = this.#options;
    using _slot = await this.#slots.acquire(signal);
    return await describeTools(starts, { tool, profile: profileOf(tool), toolConfig }, signal);
  }

  async #find(facts: readonly string[] | undefined): Promise<ToolDescription | undefined> {
    return facts === undefined ? undefined : await this.#options.kept?.find(facts);
  }

  /** All that a description depends on; undefined where that is too much to compare. */
  async #factsOf(tool: ToolEntry, signal: AbortSignal): Promise<readonly string[] | undefined> {
    const runner = this.#options.starts.runners.get(tool.runtime);
    if (this.#options.kept === undefined || runner === undefined) return undefined;
    // Where it cannot be used, neither can the tool be described, which says why.
    const interpreter = await runner.interpreterOf?.(tool).catch(() => undefined);
    const fingerprint = await abortable(this.#fingerprint(runner), signal);
    if (fingerprint === undefined) return undefined;
    const packages = runner.installationKeyOf?.(tool) ?? "";
    const { executable = "", identity = "" } = interpreter ?? {};
    return [entryKey(tool), fingerprint, packages, executable, identity];
  }

  #fingerprint(runner: ToolRunner): Promise<string | undefined> {
    const { runtime } = runner;
    let shared = this.#fingerprints.get(runtime);
    if (shared === undefined) {
      shared = new SharedNext(async () => {
        const runnerDir = this.#options.runnerDirOf(runtime);
        const own = runnerDir === undefined ? [] : [{ path: runnerDir, depth: "tree" } as const];
        // The number of entries bounds it.
        const { fingerprint } = await fingerprintCode(
          [...runner.sources, ...own],
          AbortSignal.any([]),
        );
        return fingerprint;
      });
      this.#fingerprints.set(runtime, shared);
    }
    return shared.run();
  }
}
