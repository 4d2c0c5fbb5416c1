/**
 * Reads and moves the changelog's [Unreleased].
 */

/** Marks an entry that asks users to change something. */
export const breaking = "**Breaking:**";

const section = /^## \[Unreleased\]\n(?<text>[^]*?)(?=^## |$(?![^]))/m;

/** The text of [Unreleased]. Throws if the changelog has no such section. */
export function unreleasedOf(changelog: string): string {
  const text = section.exec(changelog)?.groups?.["text"];
  if (text === undefined) throw new Error("CHANGELOG.md has no section [Unreleased]");
  return text;
}

/** Its headings of the third level, such as `Added`. */
export function headings(unreleased: string): readonly string[] {
  return [...unreleased.matchAll(/^### (.+)$/gm)].flatMap(([, title]) => title?.trim() ?? []);
}

/** Its list entries of the first level, with their further lines. */
export function entries(unreleased: string): readonly string[] {
  return [...unreleased.matchAll(/^- .+(?:\n(?: +.*)?(?=\n|$))*/gm)].map(([entry]) => entry);
}

/** The changelog with [Unreleased] under the version and its date, and a new, empty section. */
export function datedChangelog(changelog: string, version: string, date: string): string {
  return changelog.replace(section, (_whole, text: string) =>
    ["## [Unreleased]\n\n", `## [${version}] - ${date}\n`, text].join(""),
  );
}
