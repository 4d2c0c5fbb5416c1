/**
 * ZIP files for tests, honest and hostile ones, by Python's zipfile.
 */
import { execFileSync } from "node:child_process";

/** An entry of an archive. */
export interface ZipEntry {
  readonly name: string;
  readonly text?: string;
  /** `st_mode`; a regular file that all may read unless given. */
  readonly mode?: number;
  /** Bytes that the archive says it has; as many as it has unless given. */
  readonly declared?: number;
}

const program = `
import json, sys, warnings, zipfile
warnings.simplefilter("ignore")
path, entries = sys.argv[1], json.load(sys.stdin)
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
    for entry in entries:
        info = zipfile.ZipInfo("x", (2024, 1, 1, 0, 0, 0))
        # As it is: ZipInfo would repair it.
        info.filename = entry["name"]
        info.external_attr = entry.get("mode", 0o100644) << 16
        info.create_system = 3
        info.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(info, entry.get("text", ""))
        # The central directory is written at the end.
        info.file_size = entry.get("declared", info.file_size)
`;

/** Writes an archive. */
export function writeZip(path: string, entries: readonly ZipEntry[]): void {
  execFileSync("/usr/bin/python3", ["-c", program, path], { input: JSON.stringify(entries) });
}
