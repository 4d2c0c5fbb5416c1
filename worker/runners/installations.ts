/**
 * Packages of tools, in a form that sandboxes can mount.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import { type SandboxBackend, SandboxError, type SharedDirectory } from "../sandbox/sandbox.ts";
import type { Installation, PackageSource } from "./runner.ts";

/** Installations without a sandbox that stay shared. */
export const maxUnused = 64;

/**
 * The installation that a tool runs with. Throws SandboxError where it has none and may not run
 * with
 * what is installed for its interpreter.
 */
export function installationFor(
  tool: ToolEntry,
  { installationOf, installsPackages = false }: PackageSource,
): Installation | undefined {
  const installation = installationOf?.(tool);
  if (installation === undefined && installsPackages && tool.packages !== undefined)
    throw new SandboxError(`the packages of tool "${tool.name}" are not installed`);
  return installation;
}

interface Entry {
  readonly shared: Promise<SharedDirectory>;
  users: number;
}

/**
 * Shares each installation once: one has tens of thousands of files, and never changes. Its owner
 * disposes it after the last sandbox.
 */
export class SharedInstallations implements AsyncDisposable {
  readonly #backend: Pick<SandboxBackend, "share">;
  /** By key; the one whose last sandbox ended first is the first. */
  readonly #entries = new Map<string, Entry>();

  constructor(backend: Pick<SandboxBackend, "share">) {
    this.#backend = backend;
  }

  /** A mount source. The caller disposes it after the sandbox. Throws SandboxError. */
  async share({ dir, key }: Installation): Promise<SharedDirectory> {
    const entry = this.#entries.get(key) ?? { shared: this.#backend.share(dir), users: 0 };
    this.#entries.set(key, entry);
    entry.users++;
    try {
      const { source } = await entry.shared;
      return { source, [Symbol.asyncDispose]: () => this.#release(key, entry) };
    } catch (error) {
      // The next call tries again.
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#entries.keys()].map((key) => this.#forget(key)));
  }

  async #release(key: string, entry: Entry): Promise<void> {
    if (--entry.users > 0) return;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    const unused = [...this.#entries].filter(([, { users }]) => users === 0);
    const [oldest] = unused;
    if (oldest !== undefined && unused.length > maxUnused) await this.#forget(oldest[0]);
  }

  async #forget(key: string): Promise<void> {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    const shared = await entry?.shared.catch(() => undefined);
    await shared?.[Symbol.asyncDispose]();
  }
}
