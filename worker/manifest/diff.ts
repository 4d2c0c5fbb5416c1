/**
 * The difference between two manifests, for subscriptions.
 */
import { isDeepStrictEqual } from "node:util";

import { type Manifest, type ManifestChange, queuesOfTools } from "./manifest.ts";

/** The change from `before` to `after`; undefined when both answer the same calls alike. */
export function diffManifests(before: Manifest, after: Manifest): ManifestChange | undefined {
  const added = [...after.tools.keys()].filter((name) => !before.tools.has(name)).sort();
  const removed = [...before.tools.keys()].filter((name) => !after.tools.has(name)).sort();
  const changed = [...after.tools.values()]
    .filter(({ name }) => before.tools.has(name))
    .filter((entry) => !isDeepStrictEqual(before.tools.get(entry.name), entry))
    .map(({ name }) => name)
    .sort();
  const isSame = added.length + removed.length + changed.length === 0;
  if (isSame && isDeepStrictEqual(queuesOfTools(before), queuesOfTools(after))) return undefined;
  return { manifest: after, added, removed, changed };
}
