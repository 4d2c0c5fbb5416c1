/** The artifacts that a call made: a preview of each, and the file. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ArtifactView } from "../../../worker/console/api.ts";
import { formatBytes } from "../../format/format.ts";
import { artifactPath, messageOf } from "../../server/requests.ts";
import { Notice } from "../../ui/notice.tsx";
import { Preview, previewKind } from "./preview.tsx";
import { saveArtifact } from "./use-artifact.ts";

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
  const [problem, setProblem] = useState<string | null>(null);
  const save = (): void => {
    setProblem(null);
    saveArtifact(path, artifact.filename).catch((error: unknown) => setProblem(messageOf(error)));
  };
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
              Preview
            </button>
          )}
          <button type="button" aria-label={`Download ${filename}`} onClick={save}>
            Download
          </button>
        </div>
      </div>
      {problem !== null && <Notice kind="problem">{problem}</Notice>}
      {description !== null && <p class="lines">{description}</p>}
      {isShown && kind !== undefined && <Preview kind={kind} path={path} artifact={artifact} />}
    </li>
  );
}
