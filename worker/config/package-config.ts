/**
 * The variables of packages that tools need, and their configuration.
 */
import { z } from "zod";
import { packagePolicies, type PackagePolicy } from "../environments/environments.ts";
import { maxTimeoutSeconds } from "../protocol/limits.ts";
import { absolutePath, optional, wholeNumber, withDefault } from "./variable-kinds.ts";

const bytesPerMegabyte = 1024 * 1024;
const msPerDay = 86_400_000;

const nameList = z
  .string()
  .transform((names) => names.split(",").map((name) => name.trim()))
  .pipe(z.array(z.string().regex(/^(?:@[A-Za-z0-9._~-]+\/)?[A-Za-z0-9][A-Za-z0-9._~-]*$/)));

/** How packages are installed. */
export interface PackageConfig {
  readonly policy: PackagePolicy;
  /** Undefined allows every package. */
  readonly allowed: readonly string[] | undefined;
  readonly directory: string;
  readonly keepMs: number;
  readonly maxBytes: number;
  readonly cacheMaxBytes: number;
  readonly timeoutSeconds: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly wheelsDir: string;
  readonly netrcFile: string | undefined;
  readonly npmrcFile: string | undefined;
  readonly uvBin: string | undefined;
}

/** In the order of the documentation. */
export const packageVariables = {
  PACKAGE_POLICY: withDefault(
    z.enum(packagePolicies),
    `one of ${packagePolicies.join(", ")}`,
    "install",
    "What the worker does for tools that name [packages](packages.md): `install` them, `check` whether the interpreter has them, or `refuse` the tools.",
  ),
  PACKAGE_ALLOW: optional(
    nameList,
    "names of packages with `,` between them",
    "Packages that tools may name, and lockfiles may list. Unset: all.",
  ),
  PACKAGE_DIR: withDefault(
    absolutePath,
    "an absolute path",
    "/sandbox/environments",
    "Directory for installed packages, shared by the workers of a host.",
  ),
  PACKAGE_KEEP_DAYS: withDefault(
    wholeNumber(0, 3_650),
    "days, 0 to 3650",
    "30",
    "Time that packages are kept which no tool of a worker on the host uses.",
  ),
  PACKAGE_MAX_MB: withDefault(
    wholeNumber(0, 2 ** 31),
    "megabytes",
    "20000",
    "Size of all installed packages, above which unused ones are removed earlier.",
  ),
  PACKAGE_CACHE_MAX_MB: withDefault(
    wholeNumber(0, 2 ** 31),
    "megabytes, 0 for no cache",
    "5000",
    "Size of the [downloads that installers keep](packages.md#the-cache), above which they are removed after a build.",
  ),
  PACKAGE_TIMEOUT_SECONDS: withDefault(
    wholeNumber(1, maxTimeoutSeconds),
    `seconds, 1 to ${maxTimeoutSeconds}`,
    "600",
    "Time limit of one installation.",
  ),
  PACKAGE_BUILD_MEMORY_MB: withDefault(
    wholeNumber(64, 2 ** 20),
    "megabytes, 64 to 1048576",
    "2048",
    "Memory of one installation.",
  ),
  PACKAGE_BUILD_DISK_MB: withDefault(
    wholeNumber(16, 2 ** 20),
    "megabytes, 16 to 1048576",
    "4096",
    "Disk space of one installation below `SANDBOX_WORK_DIR`, with its temporary files.",
  ),
  TOOLS_WHEELS_DIR: withDefault(
    absolutePath,
    "an absolute path",
    "/tools/wheels",
    "Directory with wheels for Python tools, used beside the index when it exists.",
  ),
  PACKAGE_NETRC_FILE: optional(
    absolutePath,
    "an absolute path",
    "Credentials of Python indexes in the format of netrc, for installations only. Unset: none.",
  ),
  PACKAGE_NPMRC_FILE: optional(
    absolutePath,
    "an absolute path",
    "Registries of npm with their credentials in the format of .npmrc, for installations only. Unset: none.",
  ),
  PACKAGE_UV_BIN: optional(
    absolutePath,
    "an absolute path",
    "The uv program. Unset: uv of the search path, else pip.",
  ),
};

export function packageConfig(
  values: z.infer<z.ZodObject<typeof packageVariables>>,
): PackageConfig {
  return {
    policy: values.PACKAGE_POLICY,
    allowed: values.PACKAGE_ALLOW,
    directory: values.PACKAGE_DIR,
    keepMs: values.PACKAGE_KEEP_DAYS * msPerDay,
    maxBytes: values.PACKAGE_MAX_MB * bytesPerMegabyte,
    cacheMaxBytes: values.PACKAGE_CACHE_MAX_MB * bytesPerMegabyte,
    timeoutSeconds: values.PACKAGE_TIMEOUT_SECONDS,
    memoryBytes: values.PACKAGE_BUILD_MEMORY_MB * bytesPerMegabyte,
    diskBytes: values.PACKAGE_BUILD_DISK_MB * bytesPerMegabyte,
    wheelsDir: values.TOOLS_WHEELS_DIR,
    netrcFile: values.PACKAGE_NETRC_FILE,
    npmrcFile: values.PACKAGE_NPMRC_FILE,
    uvBin: values.PACKAGE_UV_BIN,
  };
}
