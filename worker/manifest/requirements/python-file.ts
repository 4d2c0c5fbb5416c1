/**
 * Requirements files of Python tools: requirements, hashes, comments and continued lines, and
 * nothing else. `-r`, `-e`, `--index-url` and all other options are refused.
 */
import { type Requirement, parseRequirement } from "./python.ts";

/** Most requirements of a file, and of an exported lockfile. */
const maxRequirements = 2_000;
/** Longest line with its continuations, in characters: a requirement and a hundred hashes. */
const maxLineLength = 16_384;

/** A requirement of a file, with the hashes that its archives may have. */
export interface HashedRequirement extends Requirement {
  /** `sha256:…`, sorted. */
  readonly hashes: readonly string[];
}

/** A file that is refused; the message names the line, and is public. */
export class RequirementsError extends Error {
  override readonly name = "RequirementsError";
}

const hash = /^--hash=(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$/;

/** The requirements of a file. Throws RequirementsError. */
export function parseRequirementsFile(text: string): readonly HashedRequirement[] {
  const found: HashedRequirement[] = [];
  for (const { line, number } of logicalLines(text)) {
    const comment = line.search(/(?:^|\s)#/);
    const content = (comment < 0 ? line : line.slice(0, comment)).trim();
    if (content === "") continue;
    found.push(parseLine(content, number));
    if (found.length > maxRequirements)
      throw new RequirementsError(`has more than ${maxRequirements} requirements`);
  }
  return found;
}

/** The file as installers read it: one line for each requirement. */
export function formatRequirements(
  requirements: readonly (Requirement & { readonly hashes?: readonly string[] })[],
): string {
  const lines = requirements.map(({ text, hashes = [] }) =>
    [text, ...hashes.map((value) => `--hash=${value}`)].join(" "),
  );
  return [...new Set(lines)]
    .sort()
    .map((line) => `${line}\n`)
    .join("");
}

function parseLine(content: string, number: number): HashedRequirement {
  const option = /(?:^|\s)(-{1,2}(?!hash=)[A-Za-z][\w-]*)/.exec(content)?.[1];
  if (option !== undefined)
    throw new RequirementsError(
      `line ${number}: the option ${option} is refused; accepted: requirements, their hashes, comments`,
    );
  const [requirement = "", ...options] = content.split(/\s(?=--)/);
  const parsed = parseRequirement(requirement.trim());
  const hashes = options.map((text) => hash.exec(text.trim())?.[1]);
  if (parsed === undefined || hashes.includes(undefined))
    throw new RequirementsError(
      `line ${number}: expected a requirement such as "requests>=2,<3" without URL or path`,
    );
  return { ...parsed, hashes: hashes.filter((value) => value !== undefined).sort() };
}

/** Lines with their continuations joined, and the number of the first. Throws RequirementsError. */
function* logicalLines(text: string): Generator<{ line: string; number: number }> {
  let [line, number] = ["", 1];
  for (const [index, part] of text.split(/\r\n?|\n/).entries()) {
    if (line === "") number = index + 1;
    // A comment has no continuation.
    const goesOn = part.endsWith("\\") && !/^\s*#/.test(part);
    line += goesOn ? `${part.slice(0, -1)} ` : part;
    if (line.length > maxLineLength)
      throw new RequirementsError(`line ${number} has more than ${maxLineLength} characters`);
    if (goesOn) continue;
    yield { line, number };
    line = "";
  }
  if (line !== "") yield { line, number };
}
