/**
 * The operator's own profiles: a YAML file → profiles beside the built-in ones, or every problem in
 * it with its place.
 */
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { type Network, networkField, toNetwork } from "../protocol/network-rules.ts";
import { credentialProblems } from "../protocol/request-rules.ts";
import { entryNameSchema, limitsField, toLimits } from "../protocol/operator-fields.ts";
import { accepts, acceptsKeys, expectation } from "../support/text/expectation.ts";
import {
  boundedProblems,
  DocumentProblems,
  type FileProblem,
  formatProblem,
  problemOfFile,
  problemsAt,
} from "../support/file-problems.ts";
import { isRecord, readDocument, type SourceDocument } from "../support/json/yaml-document.ts";
import {
  idleStartModes,
  builtInProfiles,
  type Profile,
  type Profiles,
  systemCallFilters,
  tightestProfile,
} from "./profile.ts";
import { backendNames, hasNetworks, isolates } from "./registry.ts";

/** Largest profiles file, in bytes. */
export const maxProfilesBytes = 64 * 1024;
/** Own profiles in one file. What differs for a single tool is said in the manifest. */
export const maxOwnProfiles = 32;

/**
 * A profiles file that cannot be used. `message` holds one line per problem, as that of a manifest
 * does.
 */
export class ProfilesError extends Error {
  readonly problems: readonly FileProblem[];

  constructor(path: string, problems: readonly FileProblem[]) {
    super(problems.map((problem) => formatProblem(path, problem)).join("\n"));
    this.name = "ProfilesError";
    this.problems = problems;
  }
}

const builtInNames = [...builtInProfiles.keys()];
const flag = accepts("true or false");

const shape = {
  extends: z
    .enum(builtInNames, accepts(`one of ${builtInNames.join(", ")}`))
    .describe("Built-in profile that holds for everything that is not said here."),
  backend: z
    .enum(backendNames, accepts(`one of ${backendNames.join(", ")}`))
    .nullish()
    .describe(
      "Sandbox technology. Only `bubblewrap` and `host` have networks; `host` isolates nothing.",
    ),
  network: networkField.nullish().describe("Network of the sandbox."),
  reads_etc: z.boolean(flag).nullish().describe("Whether the host's /etc is visible read-only."),
  has_var: z.boolean(flag).nullish().describe("Whether a private /var exists."),
  terminals: z.boolean(flag).nullish().describe("Whether tools can open pseudo terminals."),
  system_calls: z
    .enum(systemCallFilters, accepts(`one of ${systemCallFilters.join(", ")}`))
    .nullish()
    .describe("Filter of system calls: `strict` has no network calls."),
  auto_start: z
    .enum(idleStartModes, accepts(`one of ${idleStartModes.join(", ")}`))
    .nullish()
    .describe("How sandboxes are made before calls come, for tools that leave it to the worker."),
  limits: limitsField.nullish().describe("Bounds that differ from those of the built-in profile."),
};

const profileSchema = z
  .strictObject(shape, acceptsKeys("a map of fields", Object.keys(shape)))
  .refine(({ extends: base, backend }) => base !== tightestProfile || isIsolated(backend), {
    path: ["backend"],
    error: ({ input }) =>
      `${(input as { backend: string }).backend} isolates nothing: not for a profile that extends ${tightestProfile}`,
    when: ({ value }) => isRecord(value),
  });

/** An unknown backend is a problem of its own field. */
function isIsolated(backend: unknown): boolean {
  return typeof backend !== "string" || !backendNames.includes(backend) || isolates({ backend });
}

const versionSchema = z.literal(1, accepts("1, the version of the format that this worker reads"));

/**
 * The built-in profiles, and those of the file when there is one. Read once: a change of the file
 * takes effect at the next start. Throws ProfilesError with every problem at once.
 *
 * @param builtIn as the worker is configured
 */
export async function loadProfiles(
  path: string | undefined,
  builtIn: Profiles = builtInProfiles,
): Promise<Profiles> {
  if (path === undefined) return builtIn;
  const bytes = await readBounded(path).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    throw new ProfilesError(path, [problemOfFile(`cannot be read: ${code ?? String(error)}`)]);
  });
  if (bytes === undefined) {
    const message = `expected a regular file of at most ${maxProfilesBytes} bytes`;
    throw new ProfilesError(path, [problemOfFile(message)]);
  }
  return parseProfiles(bytes, path, builtIn);
}

/** Undefined for what is no regular file, or too large. */
async function readBounded(path: string): Promise<Uint8Array | undefined> {
  const stats = await stat(path);
  if (!stats.isFile() || stats.size > maxProfilesBytes) return undefined;
  return readFile(path);
}

/**
 * The built-in profiles and those of a text. The whole file is good or none of it.
 *
 * @param path of the file; for messages
 * Throws ProfilesError.
 */
export function parseProfiles(
  bytes: Uint8Array,
  path: string,
  builtIn: Profiles = builtInProfiles,
): Profiles {
  const reading = readDocument(bytes);
  if (!reading.ok) throw new ProfilesError(path, boundedProblems(problemsAt(reading.findings)));
  const { document } = reading;
  const found = new DocumentProblems(document, "profiles", "profile");
  const own = readFileOf(document, found, builtIn);
  const problems = [...problemsAt(document.warnings), ...found.problems];
  if (problems.length > 0) throw new ProfilesError(path, boundedProblems(problems));
  return new Map([...builtIn, ...own.map((profile) => [profile.name, profile] as const)]);
}

function readFileOf(
  { value: file }: SourceDocument,
  found: DocumentProblems,
  builtIn: Profiles,
): readonly Profile[] {
  if (!isRecord(file)) {
    found.add([], expectation('a map with "version" and "profiles"', file));
    return [];
  }
  for (const key of Object.keys(file)) {
    if (key === "version" || key === "profiles") continue;
    found.add([key], "unknown key; the keys are version, profiles", "key");
  }
  found.addIssues(["version"], versionSchema.safeParse(file["version"]).error);
  const { profiles } = file;
  if (!isRecord(profiles)) {
    found.add(["profiles"], expectation("a map of profile names", profiles));
    return [];
  }
  const entries = Object.entries(profiles);
  if (entries.length > maxOwnProfiles) {
    const message = `expected at most ${maxOwnProfiles} profiles, found ${entries.length}`;
    found.add(["profiles"], message);
    return [];
  }
  return entries.flatMap(([name, fields]) => {
    const checked = checkProfile(name, fields, found);
    return (checked && toProfile(name, checked, builtIn)) ?? [];
  });
}

type ProfileFields = z.output<typeof profileSchema>;

function checkProfile(
  name: string,
  fields: unknown,
  found: DocumentProblems,
): ProfileFields | undefined {
  const path = ["profiles", name];
  found.addIssues(path, entryNameSchema.safeParse(name).error);
  if (builtInProfiles.has(name))
    found.add(path, "is built in and cannot be defined anew; choose another name", "key");
  const checked = profileSchema.safeParse(fields);
  found.addIssues(path, checked.error);
  // Credentials are the manifest's.
  for (const problem of credentialProblems(checked.data?.network ?? "none", new Map()))
    found.add([...path, "network", ...problem.path], problem.message);
  const { backend, network } = checked.data ?? {};
  if (backend && network && !hasNetworks({ backend }) && toNetwork(network) !== "none")
    found.add([...path, "network"], `the backend ${backend} has no networks: expected none`);
  return checked.data;
}

function toProfile(name: string, fields: ProfileFields, builtIn: Profiles): Profile | undefined {
  const base = builtIn.get(fields.extends);
  if (base === undefined) return undefined;
  const backend = fields.backend ?? base.backend;
  const network = networkOf(backend, base);
  return {
    name,
    backend,
    limits: { ...base.limits, ...toLimits(fields.limits) },
    network: fields.network ? toNetwork(fields.network) : network,
    readsEtc: fields.reads_etc ?? base.readsEtc,
    hasVar: fields.has_var ?? base.hasVar,
    terminals: fields.terminals ?? base.terminals,
    systemCalls: fields.system_calls ?? base.systemCalls,
    autoStart: fields.auto_start ?? base.autoStart,
  };
}

/** What isolates nothing has the host's network, whatever the base has; containers have none. */
function networkOf(backend: string, base: Profile): Network {
  if (!isolates({ backend })) return "host";
  return hasNetworks({ backend }) ? base.network : "none";
}

/** JSON Schema (draft 2020-12) of the whole file, for editors. */
export function profilesJsonSchema(): object {
  const file = z.strictObject({
    version: versionSchema.describe("Version of the format."),
    profiles: z.record(entryNameSchema, profileSchema).describe("The profiles, by name."),
  });
  return z.toJSONSchema(file, { io: "input" });
}
