/** The artifacts that a call made: a preview of each, and the file. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ArtifactView } from "../../../worker/console/api.ts";
import { formatBytes } from "../../format/format.ts";
import { artifactPath } from "../../server/requests.ts";
import { Preview, previewKind } from "./preview.tsx";

export function Artifacts(properties: {
  readonly callId: string;
  readonly artifacts: readonly ArtifactView[];
}): VNode | null {
  const { callId, artifacts } = properties;
  if (artifacts.length === 0) return null;
  return (
    <section class="card stack" aria-labelledby="artifacts-title">
      <h2 id="artifacts-title">Artifacts</h2>
      <ul class="bare stack">
        {artifacts.map((artifact, number) => (
          <Artifact key={number} path={artifactPath(callId, number)} artifact={artifact} />
        ))}
      </ul>
    </section>
  );
}

function Artifact(properties: { readonly path: string; readonly artifact: ArtifactView }): VNode {
  const { path, artifact } = properties;
  const [isShown, setIsShown] = useState(false);
  const kind = previewKind(artifact);
  const { filename, version, mimeType, sizeBytes, description } = artifact;
  return (
    <li class="stack tight">
      <div class="spread">
        <div>
          <strong class="name">{filename}</strong>{" "}
          <span class="quiet">
            version {version} · {mimeType} · {formatBytes(sizeBytes)}
          </span>
        </div>
        <div class="actions">
          {kind !== undefined && (
            <button
              type="button"
              aria-expanded={isShown}
              aria-label={`Preview of ${filename}`}
              onClick={() => setIsShown(!isShown)}
            >
              {isShown ? "Hide" : "Preview"}
            </button>
          )}
          <a class="button" href={path} download={filename} aria-label={`Download ${filename}`}>
            Download
          </a>
        </div>
      </div>
      {description !== null && <p class="lines">{description}</p>}
      {isShown && kind !== undefined && <Preview kind={kind} path={path} artifact={artifact} />}
    </li>
  );
}
