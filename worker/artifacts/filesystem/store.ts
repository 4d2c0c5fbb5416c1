/**
 * Artifacts as files in the layout that agents share (design document §8):
 * `{base}/{scope}/{user}/{session}/{filename}/{N}` and `{N}.meta`.
 */
import { link } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { ArtifactReference } from "../../protocol/invocation.ts";
import { FileCopier } from "../../support/files/copy-file.ts";
import { writeFully } from "../../support/files/write-content.ts";
import { artifactTitle, errorCode, guarded, notFound, notSaved } from "../failures.ts";
import type { MarkStore } from "../marks.ts";
import { NameList, namesNotListed } from "../names.ts";
import { artifactKey, artifactLevels } from "../scope.ts";
import type { ArtifactKey } from "../scope.ts";
import { StoreError } from "../store.ts";
import type {
  ArtifactFacts,
  ArtifactMetadata,
  ArtifactScope,
  ArtifactSource,
  ArtifactStore,
  OpenedArtifact,
  SavedArtifact,
  StoreAccess,
} from "../store.ts";
import { examineAccess } from "./access.ts";
import {
  type Base,
  childDirectories,
  directoryLevels,
  ensureDirectory,
  findDirectory,
  makeDirectory,
  openBase,
  outerLevels,
  removeEmptyDirectory,
  syncDirectory,
} from "./directories.ts";
import { fillFile } from "./fill-file.ts";
import { FileMarks } from "./marks.ts";
import { encodeMeta, maxMetaBytes } from "./meta.ts";
import { removeLeftovers, StagedFile, stageFile, stageFiles } from "./staging.ts";
import {
  claimVersion,
  etagOf,
  listVersions,
  nextVersion,
  openVersion,
  removeVersion,
} from "./versions.ts";

/** Attempts of one save: a peer may have written into its content, or removed it. */
const maxStagings = 10;

/**
 * Creates a store below `basePath`, without access to it. The file system needs link(2): local
 * ones, NFS and CephFS have it, SMB and FUSE over object storage do not. Writers are trusted: the
 * store follows no link, but a writer could redirect a save by exchanging directories.
 */
export function createFilesystemStore(options: { basePath: string }): ArtifactStore {
  return new FilesystemStore(resolve(options.basePath));
}

class FilesystemStore implements ArtifactStore {
  readonly kind = "filesystem";
  readonly marks: MarkStore;
  readonly #base: string;
  readonly #copier = new FileCopier();

  constructor(base: string) {
    this.#base = base;
    this.marks = new FileMarks(base);
  }

  async open(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<OpenedArtifact> {
    const key = artifactKey(scope, reference.filename);
    return guarded(`${artifactTitle(key)} could not be opened`, signal, async () => {
      const directory = await findDirectory(this.#base, directoryLevels(key));
      if (directory === undefined) throw notFound(key, reference.version);
      // The latest may vanish after the listing, or be unfinished; then the one before it counts.
      const candidates =
        reference.version === undefined
          ? (await listVersions(directory)).reverse()
          : [reference.version];
      for (const version of candidates) {
        const opened = await openVersion(directory, version, key);
        if (opened !== undefined) return { version, ...opened };
      }
      throw notFound(key, reference.version);
    });
  }

  async stat(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<ArtifactFacts> {
    const { body, file: _file, ...facts } = await this.open(scope, reference, signal);
    body.destroy();
    return facts;
  }

  async save(
    scope: ArtifactScope,
    filename: string,
    source: ArtifactSource,
    metadata: ArtifactMetadata,
    signal: AbortSignal,
  ): Promise<SavedArtifact> {
    const key = artifactKey(scope, filename);
    return guarded(`${artifactTitle(key)} could not be saved`, signal, async () => {
      const meta = encodeMeta(metadata);
      if (meta.length > maxMetaBytes) throw notSaved(key, "its MIME type is too long");
      for (let stagings = 0; stagings < maxStagings; stagings++) {
        const saved = await this.#saveOnce(key, source, meta, signal);
        if (saved !== undefined) return saved;
      }
      throw notSaved(key, "others keep overwriting or removing it");
    });
  }

  async deleteVersion(
    scope: ArtifactScope,
    filename: string,
    { version, saveId }: SavedArtifact,
    signal: AbortSignal,
  ): Promise<boolean> {
    const key = artifactKey(scope, filename);
    return guarded(`${artifactTitle(key, version)} could not be deleted`, signal, async () => {
      const directory = await findDirectory(this.#base, directoryLevels(key));
      if (directory === undefined) return false;
      const isDeleted = await removeVersion(directory, version, saveId);
      if (!isDeleted) return false;
      await syncDirectory(directory);
      await removeEmptyDirectory(directory);
      return true;
    });
  }

  async names(scope: ArtifactScope, signal: AbortSignal): Promise<readonly string[]> {
    const levels = artifactLevels(scope);
    return guarded(namesNotListed(scope), signal, async () => {
      const list = new NameList(scope);
      for (const level of levels) {
        const directory = await findDirectory(this.#base, outerLevels(level));
        if (directory === undefined) continue;
        for await (const name of childDirectories(directory)) {
          signal.throwIfAborted();
          // A peer creates the directory first, and leaves it behind after a deletion.
          const versions = await listVersions(join(directory, name));
          if (versions.length > 0) list.add(level, name);
        }
      }
      return list.sorted();
    });
  }

  async versions(
    scope: ArtifactScope,
    filename: string,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const key = artifactKey(scope, filename);
    return guarded(`${artifactTitle(key)} could not be listed`, signal, async () => {
      const directory = await findDirectory(this.#base, directoryLevels(key));
      return directory === undefined ? [] : listVersions(directory);
    });
  }

  /** Creates a missing base, but no parents: without them the volume is not mounted. */
  async check(signal: AbortSignal): Promise<readonly string[]> {
    return guarded("The artifact store cannot be used", signal, async () => {
      const base = await makeBase(this.#base);
      await removeLeftovers(this.#base);
      await using probe = await stageFile(this.#base, base, () => Promise.resolve());
      await using linked = new StagedFile(this.#base);
      await requireLinks(probe, linked);
      return [];
    });
  }

  async access(signal: AbortSignal): Promise<StoreAccess> {
    return guarded("The artifact store cannot be looked through", signal, async () =>
      examineAccess(await openBase(this.#base), signal),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Operations and readers close their own files.
  }

  /** Undefined when a peer has taken the version over or removed the staged files: try again. */
  async #saveOnce(
    key: ArtifactKey,
    source: ArtifactSource,
    meta: string,
    signal: AbortSignal,
  ): Promise<SavedArtifact | undefined> {
    // Files are staged one level up: a directory by the artifact's name is an artifact to peers,
    // even an empty one.
    const base = await openBase(this.#base);
    const session = await ensureDirectory(base, outerLevels(key));
    await removeLeftovers(session);
    const filling = { source, key, copier: this.#copier };
    await using staged = await stageFiles(session, base, {
      content: (file) => fillFile(file, filling, signal),
      meta: (file) => writeFully(file, Buffer.from(meta), 0),
    });
    const { content: contentPath, meta: metaPath } = staged.paths;
    signal.throwIfAborted();
    const saveId = await etagOf(contentPath);
    if (saveId === undefined) return undefined;
    try {
      const directory = await ensureDirectory(base, directoryLevels(key));
      const version = await claimVersion(
        directory,
        { contentPath, metaPath },
        await nextVersion(directory),
        key,
      );
      if (version === undefined) return undefined;
      const saved = { version, sizeBytes: source.sizeBytes, saveId };
      await keepVersion(directory, saved);
      return saved;
    } catch (error) {
      // A peer has removed the artifact or its session, with the staged files.
      if (errorCode(error) === "ENOENT") return undefined;
      throw error;
    }
  }
}

async function makeBase(path: string): Promise<Base> {
  try {
    await makeDirectory(path);
    return await openBase(path);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    throw new StoreError(
      "unavailable",
      "The artifact store cannot be used: its directory is missing, and so is the directory above.",
      { cause: error },
    );
  }
}

/** Errors of link(2) without hard links. */
const linklessCodes: ReadonlySet<string | undefined> = new Set(["EPERM", "ENOTSUP", "ENOSYS"]);

async function requireLinks(probe: StagedFile, linked: StagedFile): Promise<void> {
  try {
    await link(probe.path, linked.path);
  } catch (error) {
    if (!linklessCodes.has(errorCode(error))) throw error;
    throw new StoreError(
      "unavailable",
      "The artifact store cannot be used: its file system makes no hard links.",
      { cause: error },
    );
  }
}

/** Waits until a new version survives a crash, or removes it. */
async function keepVersion(directory: string, { version, saveId }: SavedArtifact): Promise<void> {
  try {
    await syncDirectory(directory);
  } catch (error) {
    // A failing disk may refuse the removal, too; the first error has the cause.
    await removeVersion(directory, version, saveId).catch(() => false);
    await removeEmptyDirectory(directory).catch(() => undefined);
    throw error;
  }
}
