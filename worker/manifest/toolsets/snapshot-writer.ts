/**
 * Writes the worker's own copy of a toolset, which sandboxes of every user can read.
 */
import { createHash } from "node:crypto";
import { chmod, mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { createNew } from "../../support/files/below.ts";
import { writeFully } from "../../support/files/write-content.ts";
import { CopyError, ToolsetBudget, ToolsetError } from "./budget.ts";

const directoryMode = 0o755;
const fileMode = { plain: 0o644, executable: 0o755 } as const;

/** Writes into a directory that exists, within the bounds of a toolset. */
export class SnapshotWriter {
  readonly #root: string;
  readonly #budget: ToolsetBudget;
  readonly #hash = createHash("sha256");
  /** Paths of directories that exist. */
  readonly #made = new Set(["."]);

  constructor(root: string, budget = new ToolsetBudget()) {
    this.#root = root;
    this.#budget = budget;
  }

  /** Identifies the content that was written so far: paths, permissions and bytes. */
  get revision(): string {
    return this.#hash.copy().digest("hex");
  }

  /**
   * Makes a directory and those above it.
   *
   * @param path relative, without `.` and `..`. Throws ToolsetError, CopyError.
   */
  async directory(path: string): Promise<void> {
    if (this.#made.has(path)) return;
    await this.directory(dirname(path));
    this.#budget.entry(path);
    this.#made.add(path);
    this.#hash.update(`${path}/\n`);
    await CopyError.of(mkdir(join(this.#root, path)).catch(twice(path)));
    // The mode of mkdir and open is subject to the umask.
    await CopyError.of(chmod(join(this.#root, path), directoryMode));
  }

  /** Writes a new file, and consumes the body. Throws ToolsetError, CopyError; the body's error. */
  async file(path: string, isExecutable: boolean, body: Readable): Promise<void> {
    // It may fail before it is read; then the reading rejects.
    body.on("error", () => undefined);
    await this.directory(dirname(path));
    this.#budget.entry(path);
    const digest = createHash("sha256");
    const opened = open(join(this.#root, path), createNew, 0o600).catch(twice(path));
    await using file = await CopyError.of(opened);
    let position = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      this.#budget.add(chunk.length);
      digest.update(chunk);
      await CopyError.of(writeFully(file, chunk, position));
      position += chunk.length;
    }
    const mode = isExecutable ? "executable" : "plain";
    await CopyError.of(file.chmod(fileMode[mode]));
    this.#hash.update(`${path}\0${mode}\0${digest.digest("hex")}\n`);
  }
}

/** A path of an archive that is there already, or lies in a file. */
function twice(path: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code === "EEXIST" || error.code === "ENOTDIR" || error.code === "EISDIR")
      throw new ToolsetError(`has ${path} twice`);
    if (error.code === "ENAMETOOLONG") throw new ToolsetError(`has a name that is too long`);
    throw error;
  };
}
