/**
 * The variables of the worker's environment that installers see, as data. They see no other.
 */

/** What a variable holds. */
export interface RegistryVariable {
  readonly name: string;
  readonly installers: readonly ("pip" | "uv" | "npm")[];
  /**
   * `setting`: what it says is passed on. `file`: a path of the host, which the sandbox gets.
   * `links`: URLs and directories of archives.
   */
  readonly holds: "setting" | "file" | "links";
  /** Whether another value gives other packages, and so another environment. */
  readonly decides: boolean;
  /** Its name for the other Python installer, used where that one is not set. */
  readonly also?: string;
}

const python = ["pip", "uv"] as const;
const all = ["pip", "uv", "npm"] as const;

function variables(
  installers: RegistryVariable["installers"],
  decides: boolean,
  names: readonly (string | readonly [name: string, also: string])[],
  holds: RegistryVariable["holds"] = "setting",
): readonly RegistryVariable[] {
  return names.map((entry) => {
    const [name, also] = typeof entry === "string" ? [entry, undefined] : entry;
    return { name, installers, holds, decides, ...(also !== undefined && { also }) };
  });
}

/** In the order of the documentation. */
export const registryVariables: readonly RegistryVariable[] = [
  ...variables(["pip"], true, [
    ["PIP_INDEX_URL", "UV_INDEX_URL"],
    ["PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL"],
    ["PIP_NO_INDEX", "UV_NO_INDEX"],
  ]),
  ...variables(python, true, ["PIP_ONLY_BINARY", "PIP_NO_BINARY"]),
  ...variables(["pip"], true, ["PIP_PREFER_BINARY"]),
  ...variables(python, true, ["PIP_FIND_LINKS"], "links"),
  ...variables(["pip"], false, ["PIP_TRUSTED_HOST", "PIP_PROXY", "PIP_RETRIES", "PIP_TIMEOUT"]),
  ...variables(["pip"], false, ["PIP_DEFAULT_TIMEOUT"]),
  ...variables(["pip"], false, ["PIP_CERT", "PIP_CLIENT_CERT"], "file"),
  ...variables(["uv"], true, [
    ["UV_DEFAULT_INDEX", "PIP_INDEX_URL"],
    ["UV_INDEX_URL", "PIP_INDEX_URL"],
    ["UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL"],
    ["UV_NO_INDEX", "PIP_NO_INDEX"],
  ]),
  ...variables(["uv"], true, ["UV_INDEX", "UV_INDEX_STRATEGY", "UV_EXCLUDE_NEWER"]),
  ...variables(["uv"], true, ["UV_PRERELEASE", "UV_RESOLUTION"]),
  ...variables(python, true, ["UV_NO_BUILD"]),
  ...variables(["uv"], true, ["UV_FIND_LINKS"], "links"),
  ...variables(["uv"], false, ["UV_INSECURE_HOST", "UV_HTTP_TIMEOUT", "UV_NATIVE_TLS"]),
  ...variables(["npm"], true, ["NPM_CONFIG_REGISTRY"]),
  ...variables(["npm"], false, ["NPM_CONFIG_PROXY", "NPM_CONFIG_HTTPS_PROXY"]),
  ...variables(["npm"], false, ["NPM_CONFIG_NOPROXY", "NPM_CONFIG_STRICT_SSL"]),
  ...variables(["npm"], false, ["NPM_CONFIG_FETCH_TIMEOUT", "NPM_CONFIG_FETCH_RETRIES"]),
  ...variables(["npm"], false, ["NPM_CONFIG_CAFILE", "NODE_EXTRA_CA_CERTS"], "file"),
  ...variables(all, false, ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"]),
  ...variables(python, false, ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"], "file"),
];

/** Credentials of an index that `UV_INDEX` names: `UV_INDEX_<NAME>_USERNAME`, `_PASSWORD`. */
export const uvCredential = /^UV_INDEX_[A-Z0-9_]+_(?:USERNAME|PASSWORD)$/;

/** npm and most programs read these in lower case, too. */
export function spellings(name: string): readonly string[] {
  return /^NPM_CONFIG_|_PROXY$/.test(name) ? [name, name.toLowerCase()] : [name];
}
