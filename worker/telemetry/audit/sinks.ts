/**
 * Where lines of the audit log go: a file, or standard output.
 */
import { constants, writeSync } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";

/** Appends lines. The owner calls one method at a time. */
export interface AuditSink extends AsyncDisposable {
  /** Appends a line by one write. Rejects when it was not written whole. */
  append(line: Buffer): Promise<void>;
}

/** Readable by the group, such as that of a log shipper. */
const fileMode = 0o640;

/**
 * Never waits for the reader of a pipe, and follows no link in place of the file. Descriptors are
 * closed in tools, as all of Node's.
 */
const fileFlags =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK |
  constants.O_NOCTTY;

const stdoutDescriptor = 1;

const lineEnd = Buffer.from("\n");

/** Appends to a file, which it opens again after a rotation has renamed or removed it. */
export class FileSink implements AuditSink {
  readonly #path: string;
  #handle: FileHandle | undefined;
  #identity = "";
  readonly #torn = new TornLine();

  /** Opens the file with the first line, or by `open`. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Creates the file if it is missing. Rejects with the error of the system. */
  async open(): Promise<void> {
    const handle = await open(this.#path, fileFlags, fileMode);
    try {
      this.#identity = identityOf(await handle.stat({ bigint: true }));
    } catch (error) {
      await handle.close();
      throw error;
    }
    this.#handle = handle;
  }

  async append(line: Buffer): Promise<void> {
    const handle = await this.#current();
    const bytes = this.#torn.before(line);
    const { bytesWritten } = await handle.write(bytes);
    this.#torn.after(bytes, bytesWritten);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
  }

  async #current(): Promise<FileHandle> {
    const found = await lstat(this.#path, { bigint: true }).catch(() => undefined);
    if (this.#handle !== undefined && found !== undefined && identityOf(found) === this.#identity) {
      return this.#handle;
    }
    await this[Symbol.asyncDispose]();
    await this.open();
    if (this.#handle === undefined) throw new Error("the file is closed");
    return this.#handle;
  }
}

/** Standard output, which is written as the worker's log is: in whole lines, on this thread. */
export class StdoutSink implements AuditSink {
  readonly #torn = new TornLine();

  append(line: Buffer): Promise<void> {
    return Promise.try(() => {
      const bytes = this.#torn.before(line);
      this.#torn.after(bytes, writeSync(stdoutDescriptor, bytes));
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}

/** Closes a line that a full disk has cut, so that the next one stands on its own. */
class TornLine {
  #isTorn = false;

  before(line: Buffer): Buffer {
    return this.#isTorn ? Buffer.concat([lineEnd, line]) : line;
  }

  after({ byteLength }: Buffer, bytesWritten: number): void {
    if (bytesWritten > 0) this.#isTorn = bytesWritten < byteLength;
    if (bytesWritten < byteLength) {
      throw new Error(`only ${bytesWritten} of ${byteLength} bytes were written`);
    }
  }
}

function identityOf({ dev, ino }: { readonly dev: bigint; readonly ino: bigint }): string {
  return `${dev}:${ino}`;
}
