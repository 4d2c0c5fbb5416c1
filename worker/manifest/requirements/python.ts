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

const nameCharacters = /^[A-Za-z0-9._-]+/;
const specifierCharacters = /^[0-9A-Za-z.*+!<>=~,_-]*$/;

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
  const { given, extras, versions, marker } = partsOf(text.trim());
  if (!isName(given) || archiveName.test(given) || extras?.every(isName) === false)
    return undefined;
  if (!specifierCharacters.test(versions) || (versions !== "" && !isRange(versions)))
    return undefined;
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

/**
 * The parts of a requirement, unchecked. It is cut at its signs: a pattern of the whole would try
 * each way to share blanks between its parts.
 */
function partsOf(text: string) {
  const [head, marker] = cut(text, ";");
  const [given = ""] = nameCharacters.exec(head) ?? [];
  const rest = head.slice(given.length).trim();
  const [inside, after] = rest.startsWith("[") ? cut(rest.slice(1), "]") : [undefined, rest];
  // A bracket that does not end stays, and is refused with the specifiers.
  const specifiers = (after ?? rest).trim().replace(/^\((.*)\)$/, "$1");
  return {
    given,
    extras: inside?.split(",").map((extra) => extra.trim()),
    versions: specifiers.replaceAll(/\s+/g, ""),
    marker,
  };
}

/** The text before a sign and after it; undefined for the second where there is no sign. */
function cut(text: string, sign: string): readonly [string, string | undefined] {
  const at = text.indexOf(sign);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function isName(text: string): boolean {
  return nameCharacters.exec(text)?.[0] === text && !/^[._-]|[._-]$/.test(text);
}

/** A package's name as PEP 503 compares it. */
export function normalName(given: string): string {
  return given.replaceAll(/[-_.]+/g, "-").toLowerCase();
}

function normalExtras(extras: readonly string[]): string {
  return [...new Set(extras.map(normalName))].sort().join(",");
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
