/**
 * Content of a bucket: objects, and incomplete uploads in several requests.
 */
import { randomUUID } from "node:crypto";
import { type Checksums, type SaidChecksums, checksumsOf, requireChecksums } from "./checksums.ts";
import { GcsFakeError, conditionFailed } from "./errors.ts";

/** Bytes of an object and of a request, since all of it is in memory. */
export const maxContentBytes = 256 * 1024 * 1024;

/** Bytes of an object that arrives in several requests. */
export const maxUploadBytes = 4 * 1024 ** 3;

/** Uploads that the server remembers after they were completed. */
const maxCompleted = 100;

/** Facts that come back as they were sent. */
export interface SentFacts {
  readonly name: string;
  readonly contentType?: string;
  readonly contentEncoding?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly storageClass?: string;
  readonly kmsKeyName?: string;
  readonly crc32c?: string;
  readonly md5Hash?: string;
}

/** An object. It never changes; another one may take its place. */
export interface StoredObject {
  readonly content: Buffer;
  readonly facts: SentFacts;
  readonly checksums: Checksums;
  readonly generation: string;
  readonly createdMs: number;
}

/** Conditions of a request, as it spells them. */
export interface Conditions {
  readonly ifGenerationMatch?: string | undefined;
  readonly ifGenerationNotMatch?: string | undefined;
}

/** An upload that is not complete. */
export interface Upload {
  readonly facts: SentFacts;
  readonly conditions: Conditions;
  readonly pieces: Buffer[];
  bytes: number;
}

/** A bucket in memory. */
export class Bucket {
  readonly name: string;
  readonly objects = new Map<string, StoredObject>();
  readonly uploads = new Map<string, Upload>();
  readonly #completed = new Map<string, StoredObject>();
  readonly #ignoresConditions: boolean;
  readonly #nowMs: () => number;
  #lastGeneration = 0;

  /** @param ignoresConditions as some emulators do */
  constructor(name: string, ignoresConditions: boolean, nowMs: () => number) {
    this.name = name;
    this.#ignoresConditions = ignoresConditions;
    this.#nowMs = nowMs;
  }

  /** Throws GcsFakeError without the object. */
  get(name: string): StoredObject {
    const object = this.objects.get(name);
    if (object !== undefined) return object;
    throw new GcsFakeError(404, "notFound", `No such object: ${this.name}/${name}`);
  }

  /** Throws GcsFakeError, and then leaves everything as it was. */
  put(
    facts: SentFacts,
    content: Buffer,
    conditions: Conditions = {},
    said: SaidChecksums = {},
  ): StoredObject {
    const checksums = checksumsOf(content);
    requireChecksums(checksums, said);
    requireChecksums(checksums, { crc32c: facts.crc32c, md5: facts.md5Hash });
    this.require(facts.name, conditions);
    const createdMs = this.#nowMs();
    this.#lastGeneration = Math.max(createdMs * 1_000, this.#lastGeneration + 1);
    const generation = String(this.#lastGeneration);
    const object = { content, facts, checksums, generation, createdMs };
    this.objects.set(facts.name, object);
    return object;
  }

  delete(name: string, conditions: Conditions): void {
    this.get(name);
    this.require(name, conditions);
    this.objects.delete(name);
  }

  /** Throws GcsFakeError where a condition does not hold. */
  require(name: string, { ifGenerationMatch, ifGenerationNotMatch }: Conditions): void {
    if (this.#ignoresConditions) return;
    const present = this.objects.get(name)?.generation ?? "0";
    if (ifGenerationMatch !== undefined && !/^\d+$/.test(ifGenerationMatch))
      throw new GcsFakeError(400, "invalid", "Invalid value for ifGenerationMatch.");
    const isRefused =
      (ifGenerationMatch !== undefined && ifGenerationMatch !== present) ||
      ifGenerationNotMatch === present;
    if (isRefused) throw conditionFailed();
  }

  startUpload(facts: SentFacts, conditions: Conditions): string {
    this.require(facts.name, conditions);
    const id = randomUUID();
    this.uploads.set(id, { facts, conditions, pieces: [], bytes: 0 });
    return id;
  }

  /** The object of an upload that is complete. */
  completed(id: string): StoredObject | undefined {
    return this.#completed.get(id);
  }

  /** Throws GcsFakeError without such an upload. */
  upload(id: string): Upload {
    const upload = this.uploads.get(id);
    if (upload === undefined) throw new GcsFakeError(404, "notFound", "No such upload.");
    return upload;
  }

  /** Makes the object. Throws GcsFakeError, and forgets the upload then. */
  completeUpload(id: string, said: SaidChecksums): StoredObject {
    const { facts, conditions, pieces } = this.upload(id);
    this.uploads.delete(id);
    const object = this.put(facts, Buffer.concat(pieces), conditions, said);
    const [oldest] = this.#completed.keys();
    if (oldest !== undefined && this.#completed.size >= maxCompleted)
      this.#completed.delete(oldest);
    this.#completed.set(id, object);
    return object;
  }

  /** Throws GcsFakeError without such an upload. */
  cancelUpload(id: string): void {
    this.upload(id);
    this.uploads.delete(id);
  }
}
