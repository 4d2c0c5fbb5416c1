/**
 * Saves local files to the store that harness and worker share, and downloads created artifacts.
 */
import { createReadStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { guessMimeType } from "../worker/artifacts/mime.ts";
import { type StoreConfig, openStore } from "../worker/artifacts/open.ts";
import { artifactKey, artifactScope, filenameOf } from "../worker/artifacts/scope.ts";
import { type ArtifactScope, type ArtifactStore, StoreError } from "../worker/artifacts/store.ts";
import { variableAliases } from "../worker/config/variable-aliases.ts";
import { ConfigError, type Environment, readConfig } from "../worker/config/config.ts";
import type { ArtifactReference, Caller, CreatedArtifact } from "../worker/protocol/invocation.ts";
import { writeWholeFile } from "./artifact/whole-file.ts";
import { CommandError, UsageError } from "./context.ts";

/** Store and caller. */
export interface SharedArtifactsOptions {
  readonly environment: Environment;
  /** Spelled exactly as the worker's. */
  readonly namespace: string;
  readonly caller: Caller;
  /** What needs the store, for the message that a memory store cannot be shared. */
  readonly purpose: string;
  readonly use: StoreUse;
  /** Of an S3 store; from the SDK's own sources by default. */
  readonly credentials?: Extract<StoreConfig, { readonly kind: "s3" }>["credentials"] | undefined;
}

/** Who only reads needs no permission to write, and no check of what writing takes. */
export type StoreUse = "read" | "write";

/** The artifacts of one caller in a store, which it does not own. */
export class CallArtifacts {
  readonly store: ArtifactStore;
  readonly scope: ArtifactScope;

  constructor(store: ArtifactStore, scope: ArtifactScope) {
    this.store = store;
    this.scope = scope;
  }

  /** Saves a local file as a new version of its name. Rejects with StoreError. */
  async upload(path: string, sizeBytes: number, signal: AbortSignal): Promise<ArtifactReference> {
    const filename = basename(path);
    const { version } = await this.store.save(
      this.scope,
      filename,
      { sizeBytes, open: () => createReadStream(path) },
      { mimeType: guessMimeType(filename) },
      signal,
    );
    return { filename, version };
  }

  /**
   * Writes a created artifact into `directory`, creates it if missing, and returns the file's path.
   * Replaces an existing file. Rejects with CommandError.
   */
  async download(
    artifact: CreatedArtifact,
    directory: string,
    signal: AbortSignal,
  ): Promise<string> {
    try {
      const key = artifactKey(this.scope, artifact.filename);
      const opened = await this.store.open(this.scope, artifact, signal);
      const path = join(directory, filenameOf(key));
      try {
        await mkdir(directory, { recursive: true });
        await writeWholeFile(opened.body, path, { replaces: true }, signal);
      } finally {
        opened.body.destroy();
      }
      return path;
    } catch (error) {
      signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      const advice = error instanceof StoreError ? ` ${sameStore}` : "";
      throw new CommandError(
        `cannot download "${artifact.filename}" version ${artifact.version}: ${reason}${advice}`,
        { cause: error },
      );
    }
  }
}

/** The store of the worker's variables. Its owner disposes it. */
export class SharedArtifacts extends CallArtifacts implements AsyncDisposable {
  /**
   * Opens the store that `ARTIFACT_*` describe. Throws UsageError when the variables or the names
   * cannot be used, StoreError when the store cannot.
   */
  static async open(
    options: SharedArtifactsOptions,
    signal: AbortSignal,
  ): Promise<SharedArtifacts> {
    const { environment, namespace, caller, purpose, use, credentials } = options;
    const { store: config, scope: scopeConfig } = readArtifactConfig(environment, namespace);
    if (config.kind === "memory") throw memoryStore(purpose);
    await using stack = new AsyncDisposableStack();
    const isOwn = config.kind === "s3" && credentials !== undefined;
    const store = stack.use(await openStore(isOwn ? { ...config, credentials } : config));
    const scope = usable(() => artifactScope(scopeConfig, caller));
    usable(() => artifactKey(scope, "any"));
    if (use === "write") await store.check(signal);
    stack.move();
    return new SharedArtifacts(store, scope);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.store[Symbol.asyncDispose]();
  }
}

const sameStore =
  "Worker and harness must have the same ARTIFACT_* variables and exactly the same namespace.";

/** Reads the artifact variables of the worker's configuration. Throws UsageError. */
function readArtifactConfig(environment: Environment, namespace: string) {
  const artifactVariables = Object.entries(environment).filter(
    // Where the variables of a cloud supply what ours leave open, such as the region.
    ([name]) => /^(?:ARTIFACT|AWS|GOOGLE)_/.test(variableAliases.get(name) ?? name),
  );
  const required = { SAM_NAMESPACE: namespace, DEV_BROKER_HOST: "unused" };
  try {
    return readConfig({ ...Object.fromEntries(artifactVariables), ...required }).artifacts;
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

/** What names and scope make. Throws UsageError where a store refuses them. */
export function usable<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof StoreError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

function memoryStore(purpose: string): UsageError {
  return new UsageError(
    [
      `${purpose} needs a store that the worker shares, but ARTIFACT_SERVICE_TYPE is memory (its default):`,
      "a memory store lives inside the worker's process, where nobody else can reach it.",
      "Give harness and worker the same store: ARTIFACT_SERVICE_TYPE=filesystem and ARTIFACT_BASE_PATH,",
      "or s3 or gcs with their variables, which harness fake-s3 and fake-gcs print for a try.",
      "Calls can also have content inside the request: harness invoke --preload.",
    ].join("\n"),
  );
}
