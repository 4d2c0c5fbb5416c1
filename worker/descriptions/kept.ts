/**
 * Descriptions on disk, so that a worker that starts again need not describe its tools again.
 */
import { createHash } from "node:crypto";
import { lstat, mkdir, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ToolDescription } from "../protocol/discovery/tool-description.ts";
import { isJsonObject, parseJson } from "../support/json/json.ts";
import { newId } from "../support/ids.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import { maxDescriptionBytes, readDescription, writeDescription } from "./answer.ts";

/** Descriptions in the directory; the oldest go first. */
export const maxKept = 1_000;
/** To be raised when the same code is described in another way. */
const format = 1;

const othersWrite = 0o022;
const suffix = ".json";

/**
 * A directory of descriptions, which workers of one user may share. What cannot be read counts as
 * absent, what cannot be written is logged.
 */
export class KeptDescriptions {
  readonly #directory: string;
  readonly #log: Logger;

  constructor(directory: string, log: Logger) {
    this.#directory = directory;
    this.#log = log;
  }

  /** The description that was kept for these facts. */
  async find(facts: readonly string[]): Promise<ToolDescription | undefined> {
    try {
      await requireOwn(this.#directory);
      const path = this.#pathOf(facts);
      if ((await stat(path)).size > maxDescriptionBytes) return undefined;
      const members = parseJson(await readFile(path));
      return isJsonObject(members) ? readDescription(members) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Keeps a description for facts that say all that it depends on. */
  async keep(facts: readonly string[], described: ToolDescription): Promise<void> {
    try {
      await mkdir(this.#directory, { mode: 0o700, recursive: true });
      await requireOwn(this.#directory);
      const path = this.#pathOf(facts);
      const temporary = `${path}.${newId()}`;
      try {
        await writeFile(temporary, JSON.stringify(writeDescription(described)), { mode: 0o600 });
        await rename(temporary, path);
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
      await this.#removeOldest();
    } catch (error) {
      logEvent(this.#log, "description.not_kept", { err: error });
    }
  }

  #pathOf(facts: readonly string[]): string {
    const digest = createHash("sha256").update(JSON.stringify([format, ...facts]));
    return join(this.#directory, `${digest.digest("hex")}${suffix}`);
  }

  /** Files that a killed worker has not finished are among them. */
  async #removeOldest(): Promise<void> {
    const names = await readdir(this.#directory);
    if (names.length <= maxKept) return;
    const files = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#directory, name);
        // Another worker may have removed it.
        const stats = await stat(path).catch(() => undefined);
        return { path, madeMs: stats?.mtimeMs ?? 0 };
      }),
    );
    files.sort((a, b) => a.madeMs - b.madeMs);
    for (const { path } of files.slice(0, names.length - maxKept)) await rm(path, { force: true });
  }
}

/** Throws where another user could have put a description there. */
async function requireOwn(directory: string): Promise<void> {
  const { uid, mode } = await lstat(directory);
  if (uid === process.getuid?.() && (mode & othersWrite) === 0) return;
  throw new Error(`${directory} belongs to another user, or others can write to it`);
}
