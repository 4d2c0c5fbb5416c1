/**
 * Features of Node that warn of being experimental, when they are used for the first time: nothing
 * that the author of a program could heed.
 */

/**
 * Runs an action without what it warns of meanwhile.
 *
 * @template Result
 * @param {() => Result} action
 */
export function quietly(action) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return action();
  } finally {
    process.emitWarning = emitWarning;
  }
}
