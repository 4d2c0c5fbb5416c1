/**
 * Whether a process may be forked: checked, not assumed.
 */
const { readFileSync, readdirSync, readlinkSync } = process.getBuiltinModule("node:fs");
const { pid: ownPid } = process;
const { wait } = Atomics;

/** Threads of V8, Node and libuv, which a child lacks and does not need. */
const knownThreads = /^(?:(?:node-)?V8Worker|DelayedTaskSche|libuv-worker)$/;
/** Looks at others, which may be about to end, or to take a name in place of their maker's. */
const maxLooks = 20;
const lookMs = 5;
const pause = new Int32Array(new SharedArrayBuffer(4));
/**
 * What children get anew, and what has no state to share: Node keeps the one to be out of others,
 * with musl its resolver reads the other.
 */
const harmless = /^(?:anon_inode:\[event(?:fd|poll)\]|\/dev\/(?:null|urandom))$/;
/** Of a line of /proc/self/maps: address, permissions, offset, device, inode, path. */
const mapping = /^\S+ (....) \S+ \S+ +(\d+) *(.*)$/;

/** @typedef {{ descriptors: ReadonlySet<string>, mappings: ReadonlySet<string> }} State */

/**
 * What this process has open and mapped.
 *
 * @returns {State}
 */
export function presentState() {
  return { descriptors: openDescriptors(), mappings: mappedFiles() };
}

/**
 * What children would share or lack, or undefined. To be called before the first fork.
 *
 * @param {State} before of this process before the import
 * @param {ReadonlyMap<string, readonly string[]>} places directories that children have anew, with
 *   the names that are always in them
 * @returns {string | undefined}
 */
export function whyNotToFork(before, places) {
  return threads() ?? processes() ?? descriptors(before) ?? mappings(before) ?? files(places);
}

function threads() {
  for (let look = 1; ; look += 1) {
    const others = readdirSync("/proc/self/task")
      .filter((id) => id !== `${ownPid}`)
      .map(nameOf)
      .filter((name) => !knownThreads.test(name));
    if (others.length === 0) return undefined;
    if (look === maxLooks) return `it has started threads: ${listed(others)}`;
    wait(pause, 0, 0, lookMs);
  }
}

/** @param {string} thread */
function nameOf(thread) {
  try {
    return readFileSync(`/proc/self/task/${thread}/comm`, "utf8").trim();
  } catch {
    return "one that ends";
  }
}

/** The sandbox has its first process and this one. */
function processes() {
  const others = readdirSync("/proc").filter(
    (name) => /^\d+$/.test(name) && name !== "1" && name !== `${ownPid}`,
  );
  if (others.length === 0) return undefined;
  return `it has started ${others.length} processes that still run`;
}

/**
 * Children would share offsets, locks and what arrives at sockets.
 *
 * @param {State} before
 */
function descriptors(before) {
  const left = [...openDescriptors()].filter((each) => !before.descriptors.has(each));
  return left.length === 0 ? undefined : `it has left ${listed(left.map(targetOf))} open`;
}

/**
 * Children would share what is written to a mapping, and the state of a native module, with its
 * random numbers and locks.
 *
 * @param {State} before
 */
function mappings(before) {
  const made = [...mappedFiles()].filter((each) => !before.mappings.has(each));
  return made.length === 0 ? undefined : `it has mapped ${listed(made)}`;
}

/** @param {ReadonlyMap<string, readonly string[]>} places */
function files(places) {
  for (const [directory, expected] of places) {
    const left = readdirSync(directory).find((name) => !expected.includes(name));
    if (left !== undefined) return `it has left ${directory}/${left}`;
  }
  return undefined;
}

/** Number and target of each, but for harmless ones. */
function openDescriptors() {
  const found = new Set();
  for (const number of readdirSync("/proc/self/fd")) {
    try {
      const target = readlinkSync(`/proc/self/fd/${number}`);
      if (!harmless.test(target)) found.add(`${number} ${target}`);
    } catch {
      // The list itself was read by it.
    }
  }
  return found;
}

/** @param {string} descriptor */
function targetOf(descriptor) {
  return descriptor.slice(descriptor.indexOf(" ") + 1);
}

/** Files and shared memory that are mapped to be run or shared. */
function mappedFiles() {
  const found = new Set();
  for (const line of readFileSync("/proc/self/maps", "latin1").split("\n")) {
    const [, permissions = "", inode = "0", path = ""] = mapping.exec(line) ?? [];
    const isProgram = inode !== "0" && permissions.includes("x");
    if (isProgram || permissions.endsWith("s")) found.add(path === "" ? "shared memory" : path);
  }
  return found;
}

/** @param {readonly string[]} names */
function listed(names) {
  return [...new Set(names)].toSorted().slice(0, 3).join(", ");
}
