/**
 * Whether npm can give the package provenance: a signed statement of the repository and the CI that
 * built it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Repositories of the hosts whose CIs npm takes provenance of, also in npm's short form. */
const trusted =
  /^(?:(?:git\+)?https:\/\/git(?:hub|lab)\.com\/|(?:git(?:hub|lab):)?)[^/:]+\/[^/:]+$/;

/** The command that publishes the tarball, or why it cannot have provenance yet. */
export function npmPublishing(root: string, directory: string): string {
  const refusal = provenanceRefusal(root);
  return refusal === undefined
    ? `  # In GitHub Actions or GitLab CI, which npm trusts for provenance; elsewhere npm refuses it:
  npm publish --provenance ./${directory}/*.tgz`
    : `  # WITHOUT PROVENANCE. npm's registry refuses the option --provenance for this package:
  # ${refusal}.
  npm publish ./${directory}/*.tgz`;
}

/** Undefined if `package.json` names a repository as npm's registry requires for provenance. */
export function provenanceRefusal(root: string): string | undefined {
  const { repository } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    repository?: string | { url?: string };
  };
  const url = typeof repository === "string" ? repository : repository?.url;
  if (url === undefined) return "package.json names no repository, which must be the CI's own";
  if (trusted.test(url)) return undefined;
  return `the repository in package.json is neither of GitHub nor of GitLab: ${url}`;
}
