/**
 * Grants tools the mounts and devices of the host that the operator allows.
 */
import type { Stats } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Refusal } from "../protocol/refusal.ts";
import { firstPrivateDirectory } from "./path-permissions.ts";
import type { Device, ReadOnlyMount } from "./sandbox.ts";

/** The operator's settings. */
export interface HostAccessOptions {
  /** Files and directories that tools may mount, with their descendants. */
  readonly allowedMounts: readonly string[];
  /** Device files, or directories of them. */
  readonly allowedDevices: readonly string[];
  /** Whether sandboxes run as another user than the worker. */
  readonly isForeign: boolean;
}

/** The host parts that a tool requests. */
export interface HostParts {
  readonly mounts: readonly ReadOnlyMount[];
  readonly devices: readonly string[];
}

/** Granted parts: each source is an allowed path without links. */
export interface GrantedParts {
  readonly mounts: readonly ReadOnlyMount[];
  readonly devices: readonly Device[];
}

/** A refused request. Its message names paths of the host, for the log only. */
export class NotGrantedError extends Error {
  override readonly name = "NotGrantedError";
  readonly publicReason: string;

  constructor(message: string, publicReason: string) {
    super(message);
    this.publicReason = publicReason;
  }
}

/** Rule for one kind of part. */
interface Rule {
  readonly allowed: readonly string[];
  /** Variable with the list. */
  readonly variable: string;
  /** Public words for the part. */
  readonly part: string;
  /** Required type of file. */
  readonly kind: string;
  isKind(stats: Stats): boolean;
}

/** Grants and refuses requests of tools. */
export class HostAccess {
  readonly #mounts: Rule;
  readonly #devices: Rule;
  readonly #isForeign: boolean;

  constructor({ allowedMounts, allowedDevices, isForeign }: HostAccessOptions) {
    this.#mounts = {
      allowed: allowedMounts,
      variable: "SANDBOX_ALLOWED_MOUNTS",
      part: "one of its mounts",
      kind: "a regular file or a directory",
      isKind: (stats) => stats.isFile() || stats.isDirectory(),
    };
    this.#devices = {
      allowed: allowedDevices,
      variable: "SANDBOX_ALLOWED_DEVICES",
      part: "one of its devices",
      kind: "a character device",
      isKind: (stats) => stats.isCharacterDevice(),
    };
    this.#isForeign = isForeign;
  }

  /** Resolves a request for one call, since links may change. Throws NotGrantedError. */
  async grant({ mounts, devices }: HostParts): Promise<GrantedParts> {
    return {
      mounts: await Promise.all(
        mounts.map(async ({ source, target }) => ({
          source: await this.#resolve(source, this.#mounts),
          target,
        })),
      ),
      devices: await Promise.all(
        devices.map(async (path) => ({ source: await this.#resolve(path, this.#devices), path })),
      ),
    };
  }

  /** The refusal of a request; undefined when it is granted. */
  async refuse(parts: HostParts): Promise<Refusal | undefined> {
    try {
      await this.grant(parts);
      return undefined;
    } catch (error) {
      if (error instanceof NotGrantedError) {
        return { reason: error.message, publicReason: error.publicReason };
      }
      throw error;
    }
  }

  /** The real path, when the rule allows it. */
  async #resolve(path: string, rule: Rule): Promise<string> {
    const { part, variable, kind } = rule;
    const real = await realPathOf(path);
    if (real === undefined) {
      throw new NotGrantedError(`${path} is not there`, `${part} is not there`);
    }
    if (!(await isAllowed(real, rule.allowed))) {
      const found = real === path ? path : `${path} is a link to ${real}, which`;
      const problem = `is not allowed by ${variable}`;
      throw new NotGrantedError(`${found} ${problem}`, `${part} ${problem}`);
    }
    if (!rule.isKind(await stat(real))) {
      throw new NotGrantedError(`${path} is not ${kind}`, `${part} is not ${kind}`);
    }
    const barrier = this.#isForeign ? await firstPrivateDirectory(dirname(real)) : undefined;
    if (barrier === undefined) return real;
    throw new NotGrantedError(
      `${path} is below ${barrier}, which SANDBOX_UID cannot pass`,
      `${part} is where SANDBOX_UID cannot pass`,
    );
  }
}

async function isAllowed(real: string, allowed: readonly string[]): Promise<boolean> {
  for (const path of allowed) {
    const root = await realPathOf(path);
    if (root === undefined) continue;
    if (real === root || real.startsWith(root === "/" ? root : `${root}/`)) return true;
  }
  return false;
}

/** Undefined for a path that is absent or inaccessible. */
function realPathOf(path: string): Promise<string | undefined> {
  return realpath(path).catch(() => undefined);
}
