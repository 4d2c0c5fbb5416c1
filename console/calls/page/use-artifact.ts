/** The bytes of an artifact for an element that loads a URL. */
import { useEffect, useState } from "preact/hooks";
import { loadBlob, messageOf } from "../../server/requests.ts";

/** A URL in this page, or why there is none; both null while it loads. */
export interface LoadedUrl {
  readonly url: string | null;
  readonly problem: string | null;
}

/** Loads it; the URL ends with the component. */
export function useArtifactUrl(path: string): LoadedUrl {
  const [loaded, setLoaded] = useState<LoadedUrl>({ url: null, problem: null });
  useEffect(() => {
    const stop = new AbortController();
    let url: string | null = null;
    loadBlob(path, stop.signal).then(
      (blob) => {
        url = URL.createObjectURL(blob);
        setLoaded({ url, problem: null });
      },
      (error: unknown) => {
        if (!stop.signal.aborted) setLoaded({ url: null, problem: messageOf(error) });
      },
    );
    return () => {
      stop.abort();
      if (url !== null) URL.revokeObjectURL(url);
    };
  }, [path]);
  return loaded;
}

/** Has the browser save an artifact. Rejects as the request does. */
export async function saveArtifact(path: string, filename: string): Promise<void> {
  const url = URL.createObjectURL(await loadBlob(path));
  const link = document.createElement("a");
  link.href = url;
  link.download = filename.replace(/^user:/, "");
  link.click();
  // The browser reads it by then.
  setTimeout(() => URL.revokeObjectURL(url), revokeMs);
}

/** Milliseconds for which a browser may need the URL of a file that it saves. */
const revokeMs = 60_000;
