/** Shows an artifact: an image, a table, a JSON value, or the beginning of a text. */
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ArtifactView, JsonValue } from "../../../worker/console/api.ts";
import { formatBytes } from "../../format/format.ts";
import { plainText } from "../../format/terminal-text.ts";
import { loadText, messageOf } from "../../server/requests.ts";
import { Notice } from "../../ui/notice.tsx";
import { CsvTable } from "../../values/csv-table.tsx";
import { JsonTree } from "../../values/json-tree.tsx";
import { useArtifactUrl } from "./use-artifact.ts";

/** Bytes of a text that are loaded. */
const maxTextBytes = 256 * 1024;
/** Bytes of an image that is shown. */
const maxImageBytes = 16 * 1024 * 1024;

type PreviewKind = "image" | "csv" | "json" | "text";

/** How an artifact can be shown; undefined if it can only be downloaded. */
export function previewKind(artifact: ArtifactView): PreviewKind | undefined {
  const [type = ""] = artifact.mimeType.toLowerCase().split(";");
  if (type.startsWith("image/")) return artifact.sizeBytes <= maxImageBytes ? "image" : undefined;
  if (/^text\/(csv|tab-separated-values)$/.test(type)) return "csv";
  if (type === "application/json" || type.endsWith("+json")) return "json";
  return type.startsWith("text/") || /[/+](xml|yaml|x-yaml)$/.test(type) ? "text" : undefined;
}

export function Preview(properties: {
  readonly kind: PreviewKind;
  readonly path: string;
  readonly artifact: ArtifactView;
}): VNode {
  const { kind, path, artifact } = properties;
  if (kind !== "image") return <TextPreview kind={kind} path={path} name={artifact.filename} />;
  return <ImagePreview path={path} alt={artifact.description ?? artifact.filename} />;
}

function ImagePreview({ path, alt }: { readonly path: string; readonly alt: string }): VNode {
  const { url, problem } = useArtifactUrl(path);
  if (problem !== null) return <Notice kind="problem">{problem}</Notice>;
  if (url === null) return <p class="quiet">Loading…</p>;
  return <img class="preview" src={url} alt={alt} />;
}

function TextPreview(properties: {
  readonly kind: PreviewKind;
  readonly path: string;
  readonly name: string;
}): VNode {
  const { kind, path, name } = properties;
  const [loaded, setLoaded] = useState<Awaited<ReturnType<typeof loadText>> | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    loadText(path, maxTextBytes, stop.signal).then(setLoaded, (error: unknown) => {
      if (!stop.signal.aborted) setProblem(messageOf(error));
    });
    return () => stop.abort();
  }, [path]);
  if (problem !== null) return <Notice kind="problem">{problem}</Notice>;
  if (loaded === null) return <p class="quiet">Loading…</p>;
  return (
    <>
      {loaded.isCut && <p class="quiet">The first {formatBytes(maxTextBytes)}.</p>}
      <LoadedText kind={kind} text={loaded.text} name={name} isWhole={!loaded.isCut} />
    </>
  );
}

function LoadedText(properties: {
  readonly kind: PreviewKind;
  readonly text: string;
  readonly name: string;
  readonly isWhole: boolean;
}): VNode {
  const { kind, text, name, isWhole } = properties;
  if (kind === "csv") return <CsvTable text={text} name={name} />;
  const value = kind === "json" && isWhole ? parse(text) : undefined;
  if (value !== undefined) return <JsonTree value={value} label={name} />;
  return (
    <pre class="output" tabIndex={0} role="region" aria-label={name}>
      {plainText(text)}
    </pre>
  );
}

function parse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
