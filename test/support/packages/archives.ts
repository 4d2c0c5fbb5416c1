/**
 * Packages made by hand for tests: wheels of Python, tarballs of npm.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { crc32 } from "node:zlib";

/** A Python package with one module of the same name. */
export interface WheelOptions {
  readonly name: string;
  readonly version: string;
  /** Text of the module; `VERSION` is defined unless given. */
  readonly source?: string;
  /** Requirements of PEP 508. */
  readonly requires?: readonly string[];
}

/** Writes a wheel into a directory, and returns its path. */
export function writeWheel(directory: string, options: WheelOptions): string {
  const { name, version, source = `VERSION = ${JSON.stringify(version)}\n` } = options;
  const info = `${name}-${version}.dist-info`;
  const requires = (options.requires ?? []).map((text) => `Requires-Dist: ${text}\n`).join("");
  const files = {
    [`${name}.py`]: source,
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n${requires}`,
    [`${info}/WHEEL`]:
      "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
  };
  const record = [...Object.keys(files), `${info}/RECORD`].map((path) => `${path},,\n`).join("");
  const path = join(directory, `${name}-${version}-py3-none-any.whl`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(path, zip({ ...files, [`${info}/RECORD`]: record }));
  return path;
}

/**
 * Writes the source of a package into a directory, whose build runs the Python text, and returns
 * its path. The build needs no other package: PEP 517, "In-tree build backends".
 */
export function writeSourceArchive(directory: string, name: string, build: string): string {
  const path = join(directory, `${name}-1.0.tar.gz`);
  mkdirSync(directory, { recursive: true });
  const system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n';
  const files = {
    "pyproject.toml": system,
    "backend.py": `${build}\ndef build_wheel(*args): raise SystemExit("no wheel")\n`,
    "PKG-INFO": `Metadata-Version: 2.1\nName: ${name}\nVersion: 1.0\n`,
  };
  writeFileSync(path, tarball(`${name}-1.0`, files));
  return path;
}

/** `sha256:…` of a file, as pip spells it. */
export function hashOf(path: string): string {
  return `sha256:${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
}

/** A gzipped tar of files below one folder. */
export function tarball(folder: string, files: Readonly<Record<string, string>>): Buffer {
  const root = mkdtempSync(join(tmpdir(), "str-tar-"));
  try {
    for (const [name, text] of Object.entries(files)) {
      const path = join(root, folder, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    return execFileSync("tar", ["-czf", "-", "-C", root, folder]);
  } finally {
    rmSync(root, { recursive: true });
  }
}

/** A ZIP file whose entries are stored as they are: APPNOTE.TXT, 4.3. */
function zip(files: Readonly<Record<string, string>>): Buffer {
  const [bodies, directory]: [Buffer[], Buffer[]] = [[], []];
  let offset = 0;
  for (const [name, text] of Object.entries(files)) {
    const [path, content] = [Buffer.from(name), Buffer.from(text)];
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x21, 8);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(content.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, path, content]);
    const central = Buffer.alloc(14);
    central.writeUInt32LE(0o644 << 16, 6);
    central.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x03"), common, central, path]));
    bodies.push(local);
    offset += local.length;
  }
  const index = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(directory.length, 4);
  end.writeUInt16LE(directory.length, 6);
  end.writeUInt32LE(index.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...bodies, index, Buffer.from("PK\x05\x06"), end]);
}
