/** A real browser on a console: Debian's Chromium, without a screen. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium, type Browser, type Page } from "playwright-core";

const program = "/usr/bin/chromium";
/** For what a page shows at once on an idle machine. */
const patienceMs = 20_000;

/** Why there is no browser; undefined if there is one. */
export const missingBrowser = existsSync(program)
  ? undefined
  : `${program} is not installed (apt-get install chromium)`;

/** Where a console is served. */
export interface ConsolePlace {
  /** With a slash at its end. */
  readonly url: string;
  readonly token: string;
}

export interface View {
  readonly theme: "light" | "dark";
  readonly width: number;
}

/** What a page must look right in. */
export const views: readonly View[] = [
  { theme: "light", width: 1280 },
  { theme: "dark", width: 1280 },
  { theme: "light", width: 375 },
];

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: program,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A page of a console, and everything that went wrong in it. */
export interface ConsolePage extends AsyncDisposable {
  readonly page: Page;
  /** Errors of the browser's console, of scripts, and of the content security policy. */
  readonly errors: readonly string[];
  /** Goes to a place of the console, such as `#/calls`, and waits for its heading. */
  readonly goTo: (fragment: string, heading: string | RegExp) => Promise<void>;
}

/** Opens a console in a browser context of its own; signed in unless `fragment` says otherwise. */
export async function openConsole(
  browser: Browser,
  console: ConsolePlace,
  view: View = { theme: "light", width: 1280 },
  fragment = `#token=${encodeURIComponent(console.token)}`,
): Promise<ConsolePage> {
  const context = await browser.newContext({
    colorScheme: view.theme,
    reducedMotion: "reduce",
    viewport: { width: view.width, height: 800 },
    locale: "en",
    bypassCSP: false,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(patienceMs);
  const errors: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.addInitScript(`addEventListener("securitypolicyviolation", (event) =>
    console.error("violates " + event.violatedDirective + ": " + event.blockedURI));`);
  await page.goto(console.url + fragment);
  return {
    page,
    errors,
    async goTo(fragment, heading) {
      await page.evaluate(`location.hash = ${JSON.stringify(fragment)}`);
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    },
    async [Symbol.asyncDispose]() {
      await context.close();
    },
  };
}

/** What axe-core finds wrong with the page, of any impact, as lines. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  const source = await readFile(
    createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
    "utf8",
  );
  await page.evaluate(source);
  const violations = await page.evaluate<
    readonly {
      id: string;
      help: string;
      nodes: readonly { html: string; failureSummary: string }[];
    }[]
  >(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)`);
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`),
  );
}

/** How far the page is wider than its window, in pixels. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate<number>("document.scrollingElement.scrollWidth - innerWidth");
}
