/**
 * Errors that the engine throws where it finds no memory. The text of the function runs inside, as
 * that of globals.ts.
 */

/**
 * Tells these errors from those of programs with the same text. Nothing else is of QuickJS's class
 * `InternalError` afterwards: its constructor is taken away.
 */
export function takeEngineErrors(): (thrown: unknown) => boolean {
  const { getPrototypeOf } = Object;
  const scope = globalThis as { InternalError?: { readonly prototype: { constructor?: unknown } } };
  const prototype = scope.InternalError?.prototype;
  delete scope.InternalError;
  delete prototype?.constructor;
  return (thrown) => {
    try {
      const isEngines = getPrototypeOf(thrown) === prototype;
      return isEngines && (thrown as Error).message.startsWith("out of memory");
    } catch {
      return false;
    }
  };
}
