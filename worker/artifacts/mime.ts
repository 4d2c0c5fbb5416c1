/**
 * Guesses the MIME type of an output file without one.
 */
import { extname } from "node:path/posix";
import { lookup } from "mime-types";

/** MIME type of files with an unknown extension. */
export const defaultMimeType = "application/octet-stream";

/**
 * Types that the general table lacks or gets wrong: there `.ts` is a video. Source code has the
 * original's types. Agents show models mostly `text/…`, so JSON lines are `text/…`, too.
 */
const producedTypes: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "text/x-typescript": [".ts", ".tsx", ".mts", ".cts"],
    "text/javascript": [".cjs"],
    "text/x-python": [".py", ".pyi"],
    "text/x-c++": [".cpp", ".cc", ".cxx", ".hpp"],
    "text/x-csharp": [".cs"],
    "text/x-dart": [".dart"],
    "text/x-go": [".go"],
    "text/x-haskell": [".hs"],
    "text/x-julia": [".jl"],
    "text/x-kotlin": [".kt"],
    "text/x-perl": [".pl"],
    "text/x-php": [".php"],
    "text/x-r": [".r"],
    "text/x-ruby": [".rb"],
    "text/x-rust": [".rs"],
    "text/x-scala": [".scala"],
    "text/x-swift": [".swift"],
    "application/x-sh": [".bash"],
    "text/jsonl": [".jsonl"],
    "text/x-ndjson": [".ndjson"],
    "text/x-toml": [".toml"],
    "text/plain": [".env", ".cfg", ".properties", ".lock", ".mmd"],
    "text/x-diff": [".diff", ".patch"],
    "text/x-rst": [".rst"],
    "text/x-tex": [".tex"],
    "text/x-bibtex": [".bib"],
    "text/vnd.graphviz": [".dot"],
    "application/graphql": [".graphql"],
    "application/gzip": [".tgz"],
    "application/zstd": [".zst"],
    "application/vnd.apache.parquet": [".parquet"],
    "application/vnd.apache.arrow.file": [".arrow", ".feather"],
    "application/vnd.sqlite3": [".sqlite", ".sqlite3"],
    "application/geopackage+sqlite3": [".gpkg"],
    "application/x-hdf5": [".h5", ".hdf5"],
  }).flatMap(([type, extensions]) => extensions.map((extension) => [extension, type] as const)),
);

/** MIME type by extension, in any case. It agrees with the original for its six extensions. */
export function guessMimeType(filename: string): string {
  const extension = extname(filename).toLowerCase();
  return producedTypes.get(extension) ?? (lookup(extension) || defaultMimeType);
}
