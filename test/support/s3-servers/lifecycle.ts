/**
 * The lifecycle configurations of docs/artifacts.md.
 */
import { readFileSync } from "node:fs";

/** Each JSON document of the page with rules, by the kind of its store. */
export function lifecycleDocuments(): {
  readonly s3: readonly object[];
  readonly gcs: readonly object[];
} {
  const page = readFileSync(new URL("../../../docs/artifacts.md", import.meta.url), "utf8");
  const blocks = [...page.matchAll(/^```json\n(.*?)^```$/gms)];
  const documents = blocks.map(([, text = ""]) => JSON.parse(text) as object);
  return {
    s3: documents.filter((each) => "Rules" in each),
    gcs: documents.filter((each) => "lifecycle" in each),
  };
}
