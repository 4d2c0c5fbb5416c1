/**
 * A tree of control groups as files of a temporary directory, for hosts that have no version 2:
 * what hosts say of themselves is recorded, and what the kernel does beside keeping files is done
 * here.
 */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { CgroupFiles, MemoryPeak } from "../../../worker/sandbox/cgroup/files.ts";

const recorded = join(import.meta.dirname, "../../fixtures/cgroup");

/** A host of test/fixtures/cgroup/hosts. */
export type RecordedHost =
  | "container-v1"
  | "container-v2"
  | "container-v2-read-only"
  | "hybrid"
  | "no-cgroups"
  | "service-v2";

/**
 * The real file operations below a temporary directory, and what a kernel adds in version 2
 * (cgroups(7), admin-guide/cgroup-v2.rst): files come and go with groups and controllers, a process
 * is in one group, a group that passes controllers on has no process, and one with a process or a
 * group in it stays.
 */
export class RecordedCgroups extends CgroupFiles {
  readonly root: string;
  /**
   * Groups, as paths of the tree, whose files refuse to be written, and the system's code for it.
   */
  readonly refusals = new Map<string, string>();
  /** Whether a peak of memory begins anew for who writes to it, as from Linux 6.12 on. */
  resetsPeaks = true;

  constructor(host: RecordedHost) {
    const root = mkdtempSync(join(tmpdir(), "str-cgroups-"));
    super(root);
    this.root = root;
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    cpSync(join(recorded, "hosts", host), join(root, "proc/self"), { recursive: true });
  }

  /** Lays out a group with these controllers available. */
  lay(directory: string, controllers: readonly string[], pids: readonly number[] = []): void {
    mkdirSync(this.onHost(directory), { recursive: true });
    this.#populate(directory, controllers);
    this.set(join(directory, "cgroup.procs"), pids.map((pid) => `${pid}\n`).join(""));
  }

  /** Sets what the kernel says. */
  set(path: string, text: string): void {
    writeFileSync(this.onHost(path), text);
  }

  /** What is in a file now. */
  get(path: string): string {
    return readFileSync(this.onHost(path), "utf8").trim();
  }

  override make(directory: string): void {
    this.#requireWritable(directory);
    super.make(directory);
    this.#populate(directory, this.#words(dirname(directory), "cgroup.subtree_control"));
  }

  override remove(directory: string): void {
    if (this.processesIn(directory).length + this.groupsIn(directory).length > 0)
      throw errno("EBUSY");
    for (const file of this.#filesIn(directory)) rmSync(file);
    super.remove(directory);
  }

  override processesIn(directory: string): readonly number[] {
    return super.processesIn(directory).filter(isAlive);
  }

  override write(path: string, text: string): void {
    this.#requireWritable(path);
    const directory = dirname(path);
    switch (basename(path)) {
      case "cgroup.procs":
        return this.#move(Number(text), directory);
      case "cgroup.subtree_control":
        return this.#passOn(directory, text.split(" "));
      case "cgroup.kill":
        for (const pid of this.processesIn(directory)) process.kill(pid, "SIGKILL");
        return;
      default:
        if (existsSync(this.onHost(path))) truncateSync(this.onHost(path));
        super.write(path, text);
    }
  }

  override openPeak(path: string): MemoryPeak | undefined {
    if (!existsSync(this.onHost(path))) return undefined;
    const present = join(dirname(path), "memory.current");
    return new RecordedPeak(openSync(this.onHost(path), "r"), () => {
      if (!this.resetsPeaks) throw errno("EINVAL");
      return this.get(present);
    });
  }

  override async move(path: string, pid: number): Promise<void> {
    this.write(path, String(pid));
    return Promise.resolve();
  }

  #move(pid: number, to: string): void {
    if (!isAlive(pid)) throw errno("ESRCH");
    if (this.#words(to, "cgroup.subtree_control").length > 0) throw errno("EBUSY");
    for (const file of this.#allProcs()) {
      const pids = readFileSync(file, "utf8").split("\n");
      writeFileSync(
        file,
        pids
          .filter((line) => line !== "" && line !== String(pid))
          .map((line) => `${line}\n`)
          .join(""),
      );
    }
    appendFileSync(this.onHost(join(to, "cgroup.procs")), `${pid}\n`);
  }

  #passOn(directory: string, requests: readonly string[]): void {
    const passed = new Set(this.#words(directory, "cgroup.subtree_control"));
    for (const request of requests) {
      const controller = request.slice(1);
      if (!this.#words(directory, "cgroup.controllers").includes(controller)) throw errno("ENOENT");
      if (request.startsWith("+")) passed.add(controller);
      else passed.delete(controller);
    }
    if (passed.size > 0 && this.processesIn(directory).length > 0) throw errno("EBUSY");
    this.set(join(directory, "cgroup.subtree_control"), `${[...passed].join(" ")}\n`);
    for (const name of this.groupsIn(directory)) this.#populate(join(directory, name), [...passed]);
  }

  /** Gives a group the files of its controllers, and takes those of others away. */
  #populate(directory: string, controllers: readonly string[]): void {
    const present = this.onHost(directory);
    for (const part of ["core", "memory", "pids"]) {
      const files = join(recorded, "group-v2", part);
      if (part === "core" || controllers.includes(part))
        cpSync(files, present, { recursive: true, force: false });
      else for (const name of readdirSync(files)) rmSync(join(present, name), { force: true });
    }
    this.set(join(directory, "cgroup.controllers"), `${controllers.join(" ")}\n`);
  }

  #words(directory: string, file: string): readonly string[] {
    return (this.read(join(directory, file)) ?? "").split(/\s+/).filter(Boolean);
  }

  #filesIn(directory: string): readonly string[] {
    const entries = readdirSync(this.onHost(directory), { withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map(({ name }) => this.onHost(join(directory, name)));
  }

  #allProcs(): readonly string[] {
    const names = readdirSync(join(this.root, "sys"), { recursive: true, encoding: "utf8" });
    return names
      .filter((name) => basename(name) === "cgroup.procs")
      .map((name) => join(this.root, "sys", name));
  }

  #requireWritable(path: string): void {
    for (const [directory, code] of this.refusals)
      if (path === directory || path.startsWith(`${directory}/`)) throw errno(code);
  }
}

/** Tells of what is charged after its reset the last that was looked at, as the most. */
class RecordedPeak extends MemoryPeak {
  readonly #present: () => string;
  #bytes: number | undefined;

  constructor(descriptor: number, present: () => string) {
    super(descriptor);
    this.#present = present;
  }

  override reset(): void {
    this.#bytes = Number(this.#present());
  }

  override read(): string | undefined {
    if (this.#bytes === undefined) return super.read();
    this.#bytes = Math.max(this.#bytes, Number(this.#present()));
    return `${this.#bytes}\n`;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function errno(code: string): Error {
  return Object.assign(new Error(code), { code });
}
