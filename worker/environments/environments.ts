/**
 * Environments: what the packages of tools are installed into. Tools with the same packages share
 * one; it is never changed once it is there.
 */
import type { Runtime } from "../manifest/manifest.ts";
import type { ReadOnlyMount } from "../sandbox/sandbox.ts";

/** A finished environment on the host. */
export interface Installation {
  /** Its directory, with `packages/` (Python) or `node_modules/` (Node). */
  readonly dir: string;
  /** SHA-256 of all that decides its content, hex. */
  readonly key: string;
}

/** An interpreter that packages are installed for. */
export interface Interpreter {
  /** Program on the host, and in a sandbox with its mounts. */
  readonly executable: string;
  /** What tools without packages of their own run, which sees what is installed for it. */
  readonly program: string;
  readonly mounts: readonly ReadOnlyMount[];
  /** What decides which archives fit: version, binary interface, platform. */
  readonly identity: string;
}

/** What `PACKAGE_POLICY` says of tools that name packages. */
export const packagePolicies = ["install", "check", "refuse"] as const;
export type PackagePolicy = (typeof packagePolicies)[number];

/** What an environment is made from, decided before any installer runs. */
export interface EnvironmentPlan {
  readonly key: string;
  readonly runtime: Runtime;
  readonly interpreter: Interpreter;
  /** How the installer reads `files`. */
  readonly kind: PlanKind;
  /** Content by name: what the installer reads, in normal form. */
  readonly files: ReadonlyMap<string, string>;
  readonly runsScripts: boolean;
  /** Names of all packages that are known before the installation, normalised. */
  readonly names: readonly string[];
  /** For people: requirements, or the path of a lockfile. */
  readonly title: string;
}

/** `hashed`: each requirement has its hashes, and nothing else may be installed. */
export type PlanKind = "requirements" | "hashed" | "uv-lock" | "npm" | "npm-lock";

/** Why packages are refused before an installation, or what came of one. */
export class EnvironmentError extends Error {
  override readonly name = "EnvironmentError";
  /** For callers. */
  readonly publicReason: string;
  /** The last lines of the installer, without secrets. */
  readonly output: string | undefined;

  constructor(
    reason: string,
    options: {
      readonly publicReason?: string;
      readonly output?: string;
      readonly cause?: unknown;
    } = {},
  ) {
    super(reason, "cause" in options ? { cause: options.cause } : undefined);
    this.publicReason = options.publicReason ?? "its packages could not be installed";
    this.output = options.output;
  }

  /** The message with that of its cause, which may name paths of the host. */
  get explained(): string {
    return this.cause instanceof Error ? `${this.message}: ${this.cause.message}` : this.message;
  }
}

/** An installer that ended without success, or at a limit but that of time. */
export class InstallerError extends EnvironmentError {}
