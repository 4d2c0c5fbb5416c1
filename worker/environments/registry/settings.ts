/**
 * The registries of the operator, as installers in a sandbox see them.
 */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import type { Runtime } from "../../manifest/manifest.ts";
import { EnvironmentError } from "../environments.ts";
import { Redaction, withoutCredentials } from "./redaction.ts";
import { type RegistryVariable, registryVariables, spellings, uvCredential } from "./variables.ts";

/** Largest netrc or .npmrc, in bytes. */
const maxSecretBytes = 64 * 1024;
/** Where the sandbox has files and directories that variables name. */
const inside = "/sandbox/registry";

/** The operator's settings. */
export interface RegistryOptions {
  /** The worker's environment. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Directory of wheels, used when it is there. */
  readonly wheelsDir: string;
  readonly netrcFile: string | undefined;
  readonly npmrcFile: string | undefined;
}

export type Installer = "pip" | "uv" | "npm";

/** What an installer gets of the operator. */
export interface RegistryAccess {
  readonly environment: ReadonlyMap<string, string>;
  /** Files and directories of the host that the environment names, for the sandbox. */
  readonly shares: readonly { readonly path: string; readonly target: string }[];
  /** Directory of wheels inside, or undefined without one. */
  readonly wheels: string | undefined;
  /** Secret files for the work directory, by name. */
  readonly files: ReadonlyMap<string, string>;
  readonly redaction: Redaction;
}

/** The registries of one worker. */
export class RegistrySettings {
  readonly #options: RegistryOptions;

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /**
   * Hash of the settings that decide what is installed, without credentials. Throws
   * EnvironmentError.
   */
  async fingerprint(runtime: Runtime): Promise<string> {
    const installers = runtime === "python" ? ["pip", "uv"] : ["npm"];
    const values = registryVariables
      .filter(
        ({ decides, installers: own }) => decides && own.some((one) => installers.includes(one)),
      )
      .map(({ name }) => [name, withoutCredentials(this.#valueOf(name) ?? "")]);
    const npmrc = runtime === "node" ? (await this.#secretFiles("npm")).get("npmrc") : undefined;
    const lines = npmrc?.match(/^.*\bregistry\s*=.*$/gm)?.map(withoutCredentials) ?? [];
    return createHash("sha256")
      .update(JSON.stringify([values, lines, runtime === "python" ? this.#options.wheelsDir : ""]))
      .digest("hex");
  }

  /** What an installer gets. Throws EnvironmentError for a file that is not there. */
  async accessOf(installer: Installer): Promise<RegistryAccess> {
    const environment = new Map<string, string>();
    const shares: { path: string; target: string }[] = [];
    const mount = (path: string, name: string): string => {
      const target = `${inside}/${name}`;
      shares.push({ path, target });
      return target;
    };
    // Its own variables first: one of the other Python installer replaces none.
    for (const nameOf of [ownName, otherName]) {
      for (const variable of registryVariables) {
        const name = nameOf(variable, installer);
        const value = this.#valueOf(variable.name);
        if (name === undefined || value === undefined || environment.has(name)) continue;
        environment.set(name, await located(variable, value, mount));
      }
    }
    const secrets = new Map<string, string>();
    for (const [name, value] of Object.entries(this.#options.environment))
      if (installer === "uv" && uvCredential.test(name) && value) secrets.set(name, value);
    for (const [name, value] of secrets) environment.set(name, value);
    const files = await this.#secretFiles(installer);
    const { wheelsDir } = this.#options;
    const hasWheels = installer !== "npm" && (await isDirectory(wheelsDir));
    return {
      environment,
      wheels: hasWheels ? mount(wheelsDir, "wheels") : undefined,
      shares,
      files,
      redaction: new Redaction(environment.values(), secrets.values(), files.values()),
    };
  }

  async #secretFiles(installer: Installer): Promise<ReadonlyMap<string, string>> {
    const { netrcFile, npmrcFile } = this.#options;
    const [name, path, variable] =
      installer === "npm"
        ? (["npmrc", npmrcFile, "PACKAGE_NPMRC_FILE"] as const)
        : (["netrc", netrcFile, "PACKAGE_NETRC_FILE"] as const);
    if (path === undefined) return new Map();
    const content = await readFile(path, "utf8").catch((error: unknown) => {
      throw new EnvironmentError(`${variable} names a file that cannot be read`, { cause: error });
    });
    if (Buffer.byteLength(content) > maxSecretBytes)
      throw new EnvironmentError(`${variable} names a file of more than ${maxSecretBytes} bytes`);
    return new Map([[name, content]]);
  }

  #valueOf(name: string): string | undefined {
    const { environment } = this.#options;
    return spellings(name)
      .map((spelling) => environment[spelling])
      .find((value) => value !== undefined && value !== "");
  }
}

/** The name of a variable that an installer reads. */
function ownName({ name, installers }: RegistryVariable, installer: Installer): string | undefined {
  return installers.includes(installer) ? name : undefined;
}

/** The name that a variable of the other Python installer has for this one. */
function otherName(
  { also, installers }: RegistryVariable,
  installer: Installer,
): string | undefined {
  return installer === "npm" || installers.includes(installer) ? undefined : also;
}

/** A value with the paths of the host in it as they are inside. Throws EnvironmentError. */
async function located(
  { name, holds }: RegistryVariable,
  value: string,
  mount: (path: string, name: string) => string,
): Promise<string> {
  if (holds === "setting") return value;
  if (holds === "file") {
    const isThere = value.startsWith("/") && (await stat(value).catch(() => undefined));
    if (!isThere) throw new EnvironmentError(`${name} names no file by its absolute path`);
    return mount(value, name.toLowerCase());
  }
  const places = value.split(/[\s,]+/).filter(Boolean);
  const found = await Promise.all(
    places.map(async (place, index) => {
      if (!place.startsWith("/")) return place;
      // pip ignores a place that is not there.
      return (await isDirectory(place))
        ? mount(place, `${name.toLowerCase()}-${index}`)
        : undefined;
    }),
  );
  return found.filter((place) => place !== undefined).join(name.startsWith("UV_") ? "," : " ");
}

async function isDirectory(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined);
  return stats?.isDirectory() === true;
}
