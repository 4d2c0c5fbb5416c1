/**
 * A tar archive of directories and links: all that the root directory of a sandbox has of its own.
 */

/** A directory, or a link to the target. */
export interface ArchiveEntry {
  /** Relative, without a slash at the end. */
  readonly name: string;
  readonly linkTarget?: string | undefined;
  /** Whether everybody may write to the directory. */
  readonly isOpen?: boolean;
}

const blockBytes = 512;
/** Fields of the ustar format (tar(5)), with their offsets. */
const offsets = {
  name: 0,
  mode: 100,
  uid: 108,
  gid: 116,
  size: 124,
  mtime: 136,
  checksum: 148,
  type: 156,
  linkTarget: 157,
  magic: 257,
} as const;
const maxNameBytes = 100;
const modes = { directory: "0000755", open: "0001777", link: "0000777" } as const;
const types = { directory: "5", link: "2" } as const;

/** The archive; the same entries make the same bytes. Throws RangeError for too long a name. */
export function archiveOf(entries: readonly ArchiveEntry[]): Uint8Array {
  const end = Buffer.alloc(2 * blockBytes);
  return Buffer.concat([...entries.map(header), end]);
}

function header({ name, linkTarget, isOpen = false }: ArchiveEntry): Buffer {
  const isLink = linkTarget !== undefined;
  const path = isLink ? name : `${name}/`;
  for (const text of [path, linkTarget ?? ""])
    if (Buffer.byteLength(text) > maxNameBytes) throw new RangeError(`too long: ${text}`);
  const block = Buffer.alloc(blockBytes);
  const put = (text: string, offset: number): void => void block.write(text, offset, "utf8");
  put(path, offsets.name);
  put(`${isLink ? modes.link : isOpen ? modes.open : modes.directory}\0`, offsets.mode);
  put("0000000\0", offsets.uid);
  put("0000000\0", offsets.gid);
  put("00000000000\0", offsets.size);
  put("00000000000\0", offsets.mtime);
  put(isLink ? types.link : types.directory, offsets.type);
  put(linkTarget ?? "", offsets.linkTarget);
  put("ustar\x0000", offsets.magic);
  // Of the block with spaces in place of the checksum.
  put("        ", offsets.checksum);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, "0")}\0 `, offsets.checksum);
  return block;
}
