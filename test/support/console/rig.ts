/** A browser and a console for the tests of a file. */
import type { Browser } from "playwright-core";
import { openBrowser } from "./browser.ts";
import { builtPage } from "./built-page.ts";
import { startStandIn, type StandIn } from "./stand-in-server.ts";

export interface ConsoleRig extends AsyncDisposable {
  readonly browser: Browser;
  readonly console: StandIn;
}

export async function startConsoleRig(): Promise<ConsoleRig> {
  await using stack = new AsyncDisposableStack();
  const { directory } = stack.use(await builtPage());
  const console = stack.use(await startStandIn(directory));
  const browser = stack.adopt(await openBrowser(), (one) => one.close());
  const moved = stack.move();
  return { browser, console, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}
