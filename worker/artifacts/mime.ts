/**
 * The MIME type of an output file whose tool did not name one.
 */
import { extname } from "node:path/posix";
import { lookup } from "mime-types";

/** What a file is when its name does not say. */
export const defaultMimeType = "application/octet-stream";

/**
 * Types of what tools produce where the general table has none or another: to it `.ts` is a video.
 * Those of source code are the original's. Its agents show a model `text/…`, `application/json` and
 * little else, so JSON lines, which have no registered type, are `text/…` too.
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

/**
 * The MIME type that a filename's extension stands for, in any case and without parameters.
 *
 * The original knows `.json .txt .csv .png .jpg .jpeg`; more are known here, those six agree.
 */
export function guessMimeType(filename: string): string {
  const extension = extname(filename).toLowerCase();
  return producedTypes.get(extension) ?? (lookup(extension) || defaultMimeType);
}
