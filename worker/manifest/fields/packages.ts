/**
 * The packages of a tool: `package` and `version`, `requirements`, `requirements_file`, `lockfile`
 * and `install_scripts`. No value can become an option of an installer, a URL or a path.
 */
import { validRange } from "@renovatebot/pep440";
import { z } from "zod";
import { accepts, describeValue, whenFineSoFar } from "../../support/text/expectation.ts";
import type { PackageSet } from "../manifest.ts";
import { isNodePackageName, isNodeRange, parseNodeRequirement } from "../requirements/node.ts";
import { parseRequirement } from "../requirements/python.ts";

/** Most requirements in the manifest's list of one tool; files may have more. */
const maxRequirements = 200;
/** Longest version constraint, in characters. */
const maxVersionLength = 200;
/** Longest path, in characters. */
const maxPathLength = 500;

const pythonName = accepts(
  "the name of a Python package (letters, digits, ., _ and -), without extras, version or URL",
);
const nodeName = accepts(
  'the name of an npm package such as "zod" or "@scope/name", without version or URL',
);
const pythonVersion = accepts(
  'a PEP 440 version constraint in quotes, such as ">=1.0,<2.0" or "==1.4.2"',
);
const nodeVersion = accepts('a semver range in quotes, such as "^1.2.0" or "1.x"');
const pythonList = accepts(`a list of at most ${maxRequirements} requirements of PEP 508`);
const nodeList = accepts(`a list of at most ${maxRequirements} packages, as name@range`);
const pythonItem = accepts(
  'a requirement of PEP 508 such as "requests[socks]>=2,<3", without URL or path',
);
const nodeItem = accepts('a package with its semver range, such as "zod@^4.0.0"');
const pythonFile = accepts(
  'the path of a file below the directory of Python tools, such as "weather/requirements.txt"',
);
const lockOfPython = accepts(
  'the path of a uv.lock, or of a .txt file with a hash for each requirement, below the directory of Python tools, such as "weather/uv.lock"',
);
const lockOfNode = accepts(
  'the path of a package-lock.json below the directory of Node tools, such as "weather/package-lock.json"',
);
const flag = accepts("true or false");
const pythonOnly = { error: "allowed only with runtime python" };
const nodeOnly = { error: "allowed only with runtime node" };

/** Each level begins with a letter, a digit, _ or @: none is hidden, `..`, or an option. */
const pathBelow = /^(?:[A-Za-z0-9_@][A-Za-z0-9_@.-]*\/)*[A-Za-z0-9_@][A-Za-z0-9_@.-]*$/;

const file = (accepted: { error: (refused: { input?: unknown }) => string }, name: RegExp) =>
  z
    .string(accepted)
    .max(maxPathLength, accepted)
    .regex(pathBelow, accepted)
    .refine((path) => name.test(path), { ...accepted, ...whenFineSoFar });

/** A list whose items have to parse. */
const requirementList = (
  list: ReturnType<typeof accepts>,
  item: ReturnType<typeof accepts>,
  parse: (text: string) => unknown,
) =>
  z
    .array(
      z.string(item).refine((text) => parse(text) !== undefined, { ...item, ...whenFineSoFar }),
      list,
    )
    .max(maxRequirements, list);

/** The fields of a Python tool. */
export const pythonPackageFields = {
  package: z
    .string(pythonName)
    .refine((name) => parseRequirement(name)?.name !== undefined && /^[\w.-]+$/.test(name), {
      ...pythonName,
      ...whenFineSoFar,
    })
    .nullish()
    .describe("Python package that the tool needs."),
  version: z
    .string(pythonVersion)
    .min(1, pythonVersion)
    .max(maxVersionLength, pythonVersion)
    .refine((range) => validRange(range) && parseRequirement(`name${range}`) !== undefined, {
      ...pythonVersion,
      ...whenFineSoFar,
    })
    .nullish()
    .describe('PEP 440 version constraint for `package`, such as ">=1.0,<2.0".'),
  requirements: requirementList(pythonList, pythonItem, parseRequirement)
    .nullish()
    .describe("Requirements of PEP 508 that the tool needs, beside `package`."),
  requirements_file: file(pythonFile, /./)
    .nullish()
    .describe("Requirements file below TOOLS_PYTHON_DIR, beside `package` and `requirements`."),
  lockfile: file(lockOfPython, /(?:^|\/)uv\.lock$|\.txt$/)
    .nullish()
    .describe(
      "uv.lock, or requirements file with a hash for each line, below TOOLS_PYTHON_DIR, in place of the other fields.",
    ),
  install_scripts: z.null(nodeOnly).optional(),
};

/** The fields of a Node tool. */
export const nodePackageFields = {
  package: z
    .string(nodeName)
    .refine(isNodePackageName, { ...nodeName, ...whenFineSoFar })
    .nullish()
    .describe("npm package that the tool needs."),
  version: z
    .string(nodeVersion)
    .min(1, nodeVersion)
    .max(maxVersionLength, nodeVersion)
    .refine(isNodeRange, { ...nodeVersion, ...whenFineSoFar })
    .nullish()
    .describe('Semver range for `package`, such as "^1.2.0".'),
  requirements: requirementList(nodeList, nodeItem, parseNodeRequirement)
    .nullish()
    .describe("npm packages that the tool needs, as `name@range`, beside `package`."),
  requirements_file: z.null(pythonOnly).optional(),
  lockfile: file(lockOfNode, /(?:^|\/)package-lock\.json$/)
    .nullish()
    .describe("package-lock.json below TOOLS_NODE_DIR, in place of the other fields."),
  install_scripts: z
    .boolean(flag)
    .nullish()
    .describe("Whether the install scripts of the packages run. Default: false."),
};

/** What the checks across fields look at. */
export interface PackageFields {
  readonly package?: string | null | undefined;
  readonly version?: string | null | undefined;
  readonly requirements?: readonly string[] | null | undefined;
  readonly requirements_file?: string | null | undefined;
  readonly lockfile?: string | null | undefined;
  readonly install_scripts?: boolean | null | undefined;
}

/** Problems with the combination of valid fields. */
export function packageProblems(
  runtime: "python" | "node",
  fields: PackageFields,
): readonly { path: string[]; message: string }[] {
  const others = (["package", "requirements", "requirements_file"] as const).filter((key) =>
    isGiven(fields[key]),
  );
  const problems: { path: string[]; message: string }[] = [];
  if (isGiven(fields.version) && !isGiven(fields.package))
    problems.push({ path: ["version"], message: 'allowed only together with "package"' });
  if (isGiven(fields.lockfile) && others.length > 0)
    problems.push({
      path: ["lockfile"],
      message: `found beside ${describeValue(others[0])}; a lockfile names every package itself`,
    });
  if (fields.install_scripts === true && others.length === 0 && !isGiven(fields.lockfile))
    problems.push({ path: ["install_scripts"], message: "allowed only together with packages" });
  const twice = runtime === "node" ? inTwoRanges(toPackageSet(runtime, fields)) : undefined;
  if (twice !== undefined)
    problems.push({ path: ["requirements"], message: `${describeValue(twice)} has two ranges` });
  return problems;
}

/** A package of npm with two ranges, of which npm would install one. */
function inTwoRanges(packages: PackageSet | undefined): string | undefined {
  const names = packages?.requirements.map((text) => parseNodeRequirement(text)?.name) ?? [];
  return names.find((name, index) => name !== undefined && names.indexOf(name) < index);
}

/** The packages of valid fields; undefined when the tool names none. */
export function toPackageSet(
  runtime: "python" | "node",
  fields: PackageFields,
): PackageSet | undefined {
  const { package: name, version, requirements_file: path, lockfile } = fields;
  const own = isGiven(name)
    ? [runtime === "python" ? `${name}${version ?? ""}` : `${name}@${version ?? "*"}`]
    : [];
  const texts = [...own, ...(fields.requirements ?? [])].map((text) => normalText(runtime, text));
  if (texts.length === 0 && !isGiven(path) && !isGiven(lockfile)) return undefined;
  return {
    requirements: [...new Set(texts)].sort(),
    requirementsFile: path ?? undefined,
    lockfile: lockfile ?? undefined,
    runsScripts: fields.install_scripts ?? false,
  };
}

function normalText(runtime: "python" | "node", text: string): string {
  if (runtime === "python") return parseRequirement(text)?.text ?? text;
  const { name, range } = parseNodeRequirement(text) ?? { name: text, range: "*" };
  return `${name}@${range}`;
}

function isGiven<T>(value: T | undefined | null): value is T {
  return value !== undefined && value !== null;
}
