/**
 * The MIME type of an output file whose tool did not name one.
 */
import { extname } from "node:path/posix";
import { lookup } from "mime-types";

/** What a file is when its name does not say. */
export const defaultMimeType = "application/octet-stream";

/**
 * The MIME type that a filename's extension stands for, in any case and without parameters.
 *
 * The original knows `.json .txt .csv .png .jpg .jpeg`; more are known here, those six agree.
 */
export function guessMimeType(filename: string): string {
  const extension = extname(filename);
  return lookup(extension) || defaultMimeType;
}
