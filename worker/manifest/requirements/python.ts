/**
 * Requirements of Python tools, in the part of PEP 508 that names a package of an index. URLs,
 * paths and options are refused, so that no line of a manifest or a file becomes one.
 */
import { validRange } from "@renovatebot/pep440";

/** Longest requirement, in characters. */
export const maxRequirementLength = 500;

/** A requirement in its normal form. */
export interface Requirement {
  /** Of the package, normalised by PEP 503. */
  readonly name: string;
  /** Version specifiers without blanks, or undefined for any version. */
  readonly versions: string | undefined;
  /** The whole requirement, as an installer reads it. */
  readonly text: string;
}

const name = "[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?";
const requirement = new RegExp(
  `^(${name})\\s*(?:\\[\\s*(${name}(?:\\s*,\\s*${name})*)\\s*\\])?` +
    "\\s*(\\(?[\\s0-9A-Za-z.*+!<>=~,_-]*\\)?)\\s*(?:;(.*))?$",
);

/** A token of an environment marker. Texts have no blanks: pip splits lines at them. */
const markerToken =
  /\s*(?:(?<word>[a-z_]+)|(?<text>"[\w.+-]*"|'[\w.+-]*')|(?<sign>[<>=!~]=|===|[<>]|[()]))/y;
const markerWords: ReadonlySet<string> = new Set([
  ...["and", "or", "not", "in", "extra"],
  ...["os_name", "sys_platform", "platform_machine", "platform_python_implementation"],
  ...["platform_release", "platform_system", "platform_version"],
  ...["python_version", "python_full_version", "implementation_name", "implementation_version"],
]);

/** pip takes such a name for a file, where there is one. */
const archiveName = /\.(?:whl|zip|tar|tgz|tbz|txz|tlz|gz|bz2|xz|lz|lzma|egg)$/i;

/** The normal form of a requirement; undefined for anything else. */
export function parseRequirement(text: string): Requirement | undefined {
  if (text.length > maxRequirementLength || /[^\P{Cc}\t]/u.test(text)) return undefined;
  const [, given = "", extras, specifiers = "", marker] = requirement.exec(text.trim()) ?? [];
  if (given === "" || archiveName.test(given)) return undefined;
  const versions = specifiers.replace(/^\((.*)\)$/, "$1").replaceAll(/\s+/g, "");
  if (/[()]/.test(versions) || (versions !== "" && !isRange(versions))) return undefined;
  const condition = marker === undefined ? "" : normalMarker(marker);
  if (condition === undefined) return undefined;
  const normal = normalName(given);
  const inBrackets = extras === undefined ? "" : `[${normalExtras(extras)}]`;
  return {
    name: normal,
    versions: versions === "" ? undefined : versions,
    text: `${normal}${inBrackets}${versions}${condition === "" ? "" : ` ; ${condition}`}`,
  };
}

/** A package's name as PEP 503 compares it. */
export function normalName(given: string): string {
  return given.replaceAll(/[-_.]+/g, "-").toLowerCase();
}

function normalExtras(extras: string): string {
  return [...new Set(extras.split(",").map((extra) => normalName(extra.trim())))].sort().join(",");
}

/** Starts with an operator: a bare version is a range to the library, and none to installers. */
function isRange(versions: string): boolean {
  return (
    versions.split(",").every((part) => /^[<>=!~]/.test(part)) && Boolean(validRange(versions))
  );
}

/** The tokens with a blank between them; undefined for what is no marker. */
function normalMarker(marker: string): string | undefined {
  const tokens: string[] = [];
  markerToken.lastIndex = 0;
  const text = marker.trim();
  while (markerToken.lastIndex < text.length) {
    const found = markerToken.exec(text);
    if (found === null) return undefined;
    const { word } = found.groups ?? {};
    if (word !== undefined && !markerWords.has(word)) return undefined;
    tokens.push(found[0].trim());
  }
  return tokens.length === 0 ? undefined : tokens.join(" ");
}
