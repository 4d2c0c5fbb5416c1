/**
 * The addon that forks. Its source is `tool-runner/native/`; its builds for each processor, which
 * serve glibc and musl, are in `native/`.
 */
const { dlopen } = process;

/**
 * What the worker says of the children.
 *
 * @typedef {object} AddonSettings
 * @property {boolean} network whether they have the host's
 * @property {boolean} terminals
 * @property {boolean} gateway whether they have one
 * @property {readonly (readonly [path: string, options: string])[]} mounts memory file systems
 * @property {readonly (readonly [resource: number, soft: number, hard: number])[]} limits -1 for
 *   none
 * @property {Buffer} filter rules for system calls
 */

/**
 * @typedef {object} Addon
 * @property {(settings: AddonSettings) => number} prepare to be called before `child`; returns the
 *   descriptor of children's gateway, if they have one
 * @property {(order: ChildOrder) => number} child makes a child; returns 0 in its runner, and here
 *   the number of its first process
 * @property {() => number} fork forks this process; returns 0 in the other one
 * @property {() => void} silence takes what it writes to from a forked process
 * @property {(pid: number, milliseconds: number) => number} await the exit status of a forked
 *   process, or the signal that ended it, negative; kills it after the time
 * @property {(beforeExit: () => void, exit: () => void) => void} onRest what a forked process calls
 *   when nothing keeps its event loop alive: the second if that is still so after the first
 * @property {() => void} giveWay has this thread interrupt no other one from now on
 * @property {(status: number) => never} exit ends this process immediately
 */

/**
 * @typedef {object} ChildOrder
 * @property {string} word
 * @property {string} directory
 * @property {readonly number[]} cpus
 * @property {number} pid of the child's runner
 */

/**
 * @returns {Addon}
 * @throws where there is none for this machine
 */
export function openAddon() {
  const module = { exports: {} };
  dlopen.call(process, module, `${import.meta.dirname}/native/${process.arch}.node`);
  return /** @type {Addon} */ (module.exports);
}
