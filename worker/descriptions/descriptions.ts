/**
 * The descriptions of a worker's tools.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { StartParts } from "../pool/cold-starts.ts";
import type { ToolDescription } from "../protocol/discovery/tool-description.ts";
import type { Profile } from "../sandbox/profile.ts";
import type { JsonObject } from "../support/json/json.ts";
import { Semaphore } from "../support/semaphore.ts";
import { describeTool } from "./describe.ts";

/** Tools that are described at a time; others wait. */
const maxConcurrent = 2;

/** What descriptions are made with. */
export interface DescriptionsOptions {
  readonly starts: StartParts;
  /** The profile of a tool's calls. */
  readonly profileOf: (tool: ToolEntry) => Profile;
}

/** Describes tools by their present code. */
export class Descriptions {
  readonly #options: DescriptionsOptions;
  readonly #slots = new Semaphore({ capacity: maxConcurrent, maxWaiting: Infinity });

  constructor(options: DescriptionsOptions) {
    this.#options = options;
  }

  /**
   * Describes a tool. Throws InvocationError, whose message is public, and the signal's reason.
   *
   * @param toolConfig for class tools that make something of it; may hold secrets
   */
  async describe(
    tool: ToolEntry,
    signal: AbortSignal,
    toolConfig: JsonObject = {},
  ): Promise<ToolDescription> {
    const { starts, profileOf } = this.#options;
    using _slot = await this.#slots.acquire(signal);
    return await describeTool(starts, { tool, profile: profileOf(tool), toolConfig }, signal);
  }
}
