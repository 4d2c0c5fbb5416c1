/**
 * Where the store of Google Cloud Storage is, and how it writes.
 */

/** Settings of the store. */
export interface GcsStoreConfig {
  readonly bucket: string;
  /** URL of a server other than Google's. */
  readonly endpoint: string | undefined;
  /** Whether requests have no credentials, as emulators take them. */
  readonly isAnonymous: boolean;
  /** Resource name of a Cloud KMS key for new objects; the bucket's own by default. */
  readonly kmsKey: string | undefined;
  /** Storage class of new objects. */
  readonly storageClass: string | undefined;
}
