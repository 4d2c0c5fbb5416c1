/**
 * From the values of variables to the artifact store that is meant.
 */
import type { CacheConfig, StoreConfig } from "../artifacts/open.ts";
import type { ArtifactValues } from "./artifact-variables.ts";

const defaultRegion = "us-east-1";
const defaultCacheMegabytes = 1024;
const bytesPerMebibyte = 1024 ** 2;

/** The variable of the bucket that a store cannot do without. */
const bucketVariables: ReadonlyMap<string | undefined, string> = new Map([
  ["s3", "ARTIFACT_S3_BUCKET"],
  ["gcs", "ARTIFACT_GCS_BUCKET"],
]);

/**
 * What is wrong with the choice of a store, one line per problem, as {@link ConfigError} wants
 * them.
 */
export function storeProblems(
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const problems: string[] = [];
  const kind = environment["ARTIFACT_SERVICE_TYPE"];
  const bucket = bucketVariables.get(kind);
  if (bucket !== undefined && environment[bucket] === undefined)
    problems.push(`${bucket}: is not set; accepted: the name of a bucket`);
  const key = environment["ARTIFACT_S3_KMS_KEY_ID"];
  if (key !== undefined && environment["ARTIFACT_S3_ENCRYPTION"] !== "aws:kms")
    problems.push("ARTIFACT_S3_KMS_KEY_ID: needs ARTIFACT_S3_ENCRYPTION=aws:kms");
  const hasCache = environment["ARTIFACT_CACHE_DIR"] !== undefined;
  if (hasCache && (kind ?? "memory") === "memory")
    problems.push("ARTIFACT_CACHE_DIR: needs ARTIFACT_SERVICE_TYPE other than memory");
  for (const bound of ["ARTIFACT_CACHE_MAX_MB", "ARTIFACT_CACHE_MIN_FREE_MB"])
    if (!hasCache && environment[bound] !== undefined)
      problems.push(`${bound}: needs ARTIFACT_CACHE_DIR`);
  return problems;
}

/** The store of an environment without {@link storeProblems}. */
export function storeConfig(values: ArtifactValues): StoreConfig {
  switch (values.ARTIFACT_SERVICE_TYPE) {
    case "memory":
      return { kind: "memory" };
    case "filesystem":
      return { kind: "filesystem", basePath: values.ARTIFACT_BASE_PATH };
    case "s3":
      return {
        kind: "s3",
        bucket: values.ARTIFACT_S3_BUCKET ?? "",
        region: values.ARTIFACT_S3_REGION ?? values.AWS_REGION ?? defaultRegion,
        endpoint: values.ARTIFACT_S3_ENDPOINT,
        isPathStyle: values.ARTIFACT_S3_PATH_STYLE === "1",
        checksums: values.ARTIFACT_S3_CHECKSUMS,
        encryption: values.ARTIFACT_S3_ENCRYPTION,
        kmsKeyId: values.ARTIFACT_S3_KMS_KEY_ID,
        storageClass: values.ARTIFACT_S3_STORAGE_CLASS,
      };
    case "gcs":
      return {
        kind: "gcs",
        bucket: values.ARTIFACT_GCS_BUCKET ?? "",
        endpoint: values.ARTIFACT_GCS_ENDPOINT,
        isAnonymous:
          values.ARTIFACT_GCS_ENDPOINT?.startsWith("http:") === true &&
          values.GOOGLE_APPLICATION_CREDENTIALS === undefined,
        kmsKey: values.ARTIFACT_GCS_KMS_KEY,
        storageClass: values.ARTIFACT_GCS_STORAGE_CLASS,
      };
  }
}

/**
 * The cache in front of the store; undefined without one.
 *
 * @param callMinFreeBytes free space that calls need to start
 */
export function cacheConfig(
  values: ArtifactValues,
  callMinFreeBytes: number,
): CacheConfig | undefined {
  const { ARTIFACT_CACHE_DIR: directory, ARTIFACT_CACHE_MIN_FREE_MB: minFreeMegabytes } = values;
  if (directory === undefined) return undefined;
  return {
    directory,
    maxBytes: (values.ARTIFACT_CACHE_MAX_MB ?? defaultCacheMegabytes) * bytesPerMebibyte,
    minFreeBytes:
      minFreeMegabytes === undefined ? 2 * callMinFreeBytes : minFreeMegabytes * bytesPerMebibyte,
  };
}
