/** Uploads a file with its progress, which `fetch` does not tell. */
import type { StoredInput } from "../../worker/console/api.ts";
import { RequestError, failureMessage } from "./requests.ts";
import { authorization } from "./token.ts";

/** Stores a file as an input; `onProgress` gets the share that is sent, from 0 to 1. */
export function uploadInput(
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<StoredInput> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = (): void => request.abort();
    signal.addEventListener("abort", abort, { once: true });
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    };
    request.onload = () => {
      if (request.status === 201) resolve(JSON.parse(request.responseText) as StoredInput);
      else {
        const message = failureMessage(request.status, request.responseText);
        reject(new RequestError(request.status, message));
      }
    };
    request.onerror = () => reject(new Error("the connection was lost"));
    request.onabort = () => reject(new Error("the upload was stopped"));
    request.onloadend = () => signal.removeEventListener("abort", abort);
    request.open("PUT", `/api/inputs/${encodeURIComponent(file.name)}`);
    request.setRequestHeader("authorization", authorization().authorization);
    request.setRequestHeader("content-type", file.type || "application/octet-stream");
    request.send(file);
  });
}
