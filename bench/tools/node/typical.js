/** A tool with the imports of many: files, streams, compression, a web client, checksums. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** What such a tool has at its top. */
export const parts = { createHash, readFile, request, join, pipeline, gzip: promisify(gzip) };

export async function nothing() {
  return {};
}
