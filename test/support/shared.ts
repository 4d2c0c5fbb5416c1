/**
 * What several tests use, one after the other, because it takes long to open.
 */
import { type TestContext, afterAll } from "vitest";

/**
 * Takes what is to be done when nobody needs something any more: after one test, or after the last
 * that shares it.
 */
export type WhenOver = (end: () => Promise<void>) => void;

/**
 * Opens something in a test, which may skip that. What lies around it ends with `whenOver`, after
 * it is disposed.
 */
export type Open<Opened> = (context: TestContext, whenOver: WhenOver) => Promise<Opened>;

/**
 * One for all tests of the `describe`, or of the file, in which this is called: opened by the first
 * of them that asks.
 */
export function shared<Opened extends AsyncDisposable>(
  open: Open<Opened>,
): (context: TestContext) => Promise<Opened> {
  const owned = new AsyncDisposableStack();
  afterAll(() => owned.disposeAsync());
  let opened: Opened | undefined;
  return async (context) => (opened ??= owned.use(await open(context, (end) => owned.defer(end))));
}
