/**
 * The variables of the artifact store.
 */
import { z } from "zod";
import { absolutePath, optional, text, wholeNumber, withDefault } from "./variable-kinds.ts";

const serverUrl = z.string().regex(/^https?:\/\/[^/?#@]+\/?$/);
/**
 * "General purpose bucket naming rules" of the S3 User Guide, and what older buckets have; "About
 * Cloud Storage buckets".
 */
const bucketName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/);
const storageClass = z.string().regex(/^[A-Z][A-Z_]*$/);
const regionName = z.string().regex(/^[a-z0-9-]{1,64}$/);

/** 8 PiB: byte counts stay exact numbers. */
const maxBytes = 2 ** 53 - 1;
const bytes = wholeNumber(1, maxBytes);
/** The worker opens each output of a call before it saves the first. */
const maxOutputs = 1_000;

/** In the order of the documentation. */
export const artifactVariables = {
  ARTIFACT_SERVICE_TYPE: withDefault(
    z.enum(["memory", "filesystem", "s3", "gcs"]),
    "one of memory, filesystem, s3, gcs",
    "memory",
    "Artifact store. `memory` is inside the worker: agents do not see its artifacts.",
  ),
  ARTIFACT_BASE_PATH: withDefault(
    absolutePath,
    "an absolute path",
    "/sam/artifacts",
    "Directory of the filesystem store.",
  ),
  ARTIFACT_S3_BUCKET: optional(
    bucketName,
    "the name of a bucket",
    "Bucket of the S3 store, required then.",
  ),
  ARTIFACT_S3_REGION: optional(
    regionName,
    "a region",
    "Region of the bucket. Unset: `AWS_REGION`, else `us-east-1`.",
  ),
  AWS_REGION: optional(
    regionName,
    "a region",
    "Region of the bucket without `ARTIFACT_S3_REGION`.",
  ),
  ARTIFACT_S3_ENDPOINT: optional(
    serverUrl,
    "a URL: http:// or https:// with host and port",
    "An S3 server other than Amazon's.",
  ),
  ARTIFACT_S3_PATH_STYLE: withDefault(
    z.enum(["0", "1"]),
    "0 or 1",
    "0",
    "With 1, the bucket is in the path of requests, as most servers other than Amazon's need it.",
  ),
  ARTIFACT_S3_CHECKSUMS: withDefault(
    z.enum(["supported", "required"]),
    "one of supported, required",
    "supported",
    "`required` for servers that refuse Amazon's checksums.",
  ),
  ARTIFACT_S3_ENCRYPTION: optional(
    z.enum(["AES256", "aws:kms"]),
    "one of AES256, aws:kms",
    "Server-side encryption of new objects. Unset: the bucket's own.",
  ),
  ARTIFACT_S3_KMS_KEY_ID: optional(
    text.min(1),
    "the id or ARN of a key",
    "Key for `ARTIFACT_S3_ENCRYPTION=aws:kms`. Unset: the account's own.",
  ),
  ARTIFACT_S3_STORAGE_CLASS: optional(
    storageClass,
    "a storage class, such as STANDARD_IA",
    "Storage class of new objects. Unset: the server's own.",
  ),
  ARTIFACT_GCS_BUCKET: optional(
    bucketName,
    "the name of a bucket",
    "Bucket of the store in Google Cloud Storage, required then.",
  ),
  ARTIFACT_GCS_ENDPOINT: optional(
    serverUrl,
    "a URL: http:// or https:// with host and port",
    "A server other than Google's. With `http://` it gets no credentials, unless `GOOGLE_APPLICATION_CREDENTIALS` is set.",
  ),
  GOOGLE_APPLICATION_CREDENTIALS: optional(
    text.min(1),
    "the path of a file",
    "Credentials for Google Cloud Storage: a key, or an identity elsewhere. Unset: the SDK's other sources.",
  ),
  ARTIFACT_GCS_KMS_KEY: optional(
    z.string().regex(/^projects\/[^/]+\/locations\/[^/]+\/keyRings\/[^/]+\/cryptoKeys\/[^/]+$/),
    "projects/…/locations/…/keyRings/…/cryptoKeys/…",
    "Cloud KMS key that encrypts new objects. Unset: the bucket's own.",
  ),
  ARTIFACT_GCS_STORAGE_CLASS: optional(
    storageClass,
    "a storage class, such as NEARLINE",
    "Storage class of new objects. Unset: the bucket's own.",
  ),
  ARTIFACT_CACHE_DIR: optional(
    absolutePath,
    "an absolute path",
    "Directory of a cache of artifacts on this machine, which its workers may share. Unset: no cache.",
  ),
  ARTIFACT_CACHE_MAX_MB: optional(
    wholeNumber(1, 1_000_000_000),
    "a whole number from 1 to 1000000000",
    "Size of that cache in MiB. Unset: 1024. Artifacts of more than a quarter of it are not kept.",
  ),
  ARTIFACT_CACHE_MIN_FREE_MB: optional(
    wholeNumber(0, 1_000_000_000),
    "a whole number from 0 to 1000000000",
    "Free space in MiB that the cache leaves on its disk. Unset: twice `SANDBOX_MIN_FREE_DISK_MB`.",
  ),
  ARTIFACT_SCOPE: withDefault(
    z.enum(["namespace", "app", "custom"]),
    "one of namespace, app, custom",
    "namespace",
    "Scope of artifacts: the namespace, each agent, or `ARTIFACT_SCOPE_VALUE`. Python agents always use `namespace`.",
  ),
  ARTIFACT_SCOPE_VALUE: optional(
    text.min(1),
    "a name",
    "The scope's name with `ARTIFACT_SCOPE=custom`, required then.",
  ),
  ARTIFACT_MAX_BYTES: withDefault(
    bytes,
    "bytes, 1 or more",
    String(5 * 1024 ** 3),
    "Largest input or output artifact of a call. An output is also bounded by its profile's largest file.",
  ),
  ARTIFACT_CALL_MAX_BYTES: withDefault(
    bytes,
    "bytes, 1 or more",
    String(10 * 1024 ** 3),
    "All inputs of a call together, and all its outputs together. Outputs are also bounded by their profile's disk.",
  ),
  ARTIFACT_MAX_OUTPUTS: withDefault(
    wholeNumber(1, maxOutputs),
    `a whole number, 1 to ${maxOutputs}`,
    "100",
    "Output artifacts of a call.",
  ),
};

/** Their values. */
export type ArtifactValues = z.infer<z.ZodObject<typeof artifactVariables>>;
