/**
 * Where the S3 store is, and how it writes.
 */

/** Keys of an account. */
export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Settings of the S3 store. */
export interface S3StoreConfig {
  /** From the SDK's own sources by default. */
  readonly credentials?: S3Credentials;
  readonly bucket: string;
  /** From the SDK's own sources by default. */
  readonly region: string | undefined;
  /** URL of a server other than AWS's. */
  readonly endpoint: string | undefined;
  /** Whether the bucket is in the path instead of the host name. */
  readonly isPathStyle: boolean;
  /** `required` for servers that know no checksums but Content-MD5. */
  readonly checksums: "supported" | "required";
  /** Server-side encryption of new objects; the bucket's own by default. */
  readonly encryption: "AES256" | "aws:kms" | undefined;
  /** Key for `aws:kms`; the account's own by default. */
  readonly kmsKeyId: string | undefined;
  /** Storage class of new objects. */
  readonly storageClass: string | undefined;
}
