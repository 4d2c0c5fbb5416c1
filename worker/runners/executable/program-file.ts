/**
 * What kind of program a file is, by its first bytes (elf(5), execve(2)), and why this host cannot
 * run it.
 */
import { type FileHandle, open, stat } from "node:fs/promises";

/** The kernel reads so much of an interpreter line (BINPRM_BUF_SIZE). */
const maxLineBytes = 256;
const headerBytes = 4096;
/** Longest path of a loader, in bytes. */
const maxLoaderBytes = 1024;

/** `e_machine` of ELF files, by Node's names of architectures. */
const machines: ReadonlyMap<number, string> = new Map([
  ...([
    [3, "ia32"],
    [20, "ppc"],
    [21, "ppc64"],
    [22, "s390x"],
    [40, "arm"],
  ] as const),
  ...([
    [62, "x64"],
    [183, "arm64"],
    [243, "riscv64"],
    [258, "loong64"],
  ] as const),
]);

/** First bytes of programs of other systems, in hexadecimal digits. */
const foreignPrograms: readonly (readonly [prefix: string, system: string])[] = [
  ["4d5a", "Windows"],
  ...["feedface", "feedfacf", "cefaedfe", "cffaedfe", "cafebabe"].map(
    (prefix) => [prefix, "macOS"] as const,
  ),
];

/** ELF: sizes, and the type of the program header's entry that names the loader. */
const elf = { headerBytes: 64, entryBytes: 56, interpreter: 3, maxEntries: 64 } as const;

/** A program of this host, with what has to be there to start it. */
export interface ProgramFile {
  /** Absolute path of its interpreter or loader; undefined for one that needs none. */
  readonly interpreter: string | undefined;
  /** A program that `env` looks for in PATH. */
  readonly searched: string | undefined;
}

/** The reason that a file cannot be run. */
export class NotRunnableError extends Error {
  override name = "NotRunnableError";
}

/**
 * What a regular file needs to be started. Throws NotRunnableError, whose message continues the
 * file's name.
 *
 * @param architecture of the host, as Node says it
 */
export async function examineProgram(path: string, architecture: string): Promise<ProgramFile> {
  const { mode } = await stat(path);
  if ((mode & 0o111) === 0) throw new NotRunnableError("is not executable (chmod +x)");
  await using file = await open(path);
  const header = await readAt(file, 0, headerBytes);
  if (header.subarray(0, 2).toString("latin1") === "#!") return ofScript(header);
  if (header.length >= elf.headerBytes && header.subarray(0, 4).toString("latin1") === "\x7fELF") {
    return { interpreter: await loaderOf(file, header, architecture), searched: undefined };
  }
  const start = header.subarray(0, 4).toString("hex");
  const system = foreignPrograms.find(([prefix]) => start.startsWith(prefix))?.[1];
  throw new NotRunnableError(
    system === undefined
      ? 'is neither a program nor a script that begins with a line like "#!/bin/sh"'
      : `is a program for ${system}, this host is Linux`,
  );
}

function ofScript(header: Buffer): ProgramFile {
  const line = header.subarray(2, maxLineBytes).toString("utf8").split("\n", 1)[0] ?? "";
  if (line.endsWith("\r")) {
    throw new NotRunnableError("has lines that end as on Windows; its interpreter is not found");
  }
  const [interpreter = "", argument] = line.trim().split(/[ \t]+/);
  if (!interpreter.startsWith("/")) {
    throw new NotRunnableError(`has the interpreter "${interpreter}", which is no absolute path`);
  }
  const isSearched =
    /^(?:\/usr)?\/bin\/env$/.test(interpreter) && argument?.startsWith("-") === false;
  return { interpreter, searched: isSearched ? argument : undefined };
}

async function loaderOf(
  file: FileHandle,
  header: Buffer,
  architecture: string,
): Promise<string | undefined> {
  const is64 = header[4] === 2;
  const isLittle = header[5] === 1;
  const machine = isLittle ? header.readUInt16LE(18) : header.readUInt16BE(18);
  const name = machines.get(machine) ?? `unknown (${machine})`;
  if (name !== architecture) {
    throw new NotRunnableError(`is an ${name} program, this host is ${architecture}`);
  }
  // Tools have little-endian 64-bit hosts; on others a missing loader is found by the call.
  if (!is64 || !isLittle) return undefined;
  const tableAt = Number(header.readBigUInt64LE(32));
  const entries = Math.min(header.readUInt16LE(56), elf.maxEntries);
  const table = await readAt(file, tableAt, entries * elf.entryBytes);
  for (let at = 0; at + elf.entryBytes <= table.length; at += elf.entryBytes) {
    if (table.readUInt32LE(at) !== elf.interpreter) continue;
    const path = await readAt(file, Number(table.readBigUInt64LE(at + 8)), maxLoaderBytes);
    return path.toString("utf8").split("\0", 1)[0];
  }
  return undefined;
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}
