/** The files of the page, as `npm run build` makes them. */
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { builtPage, type BuiltPage } from "../../support/console/built-page.ts";

/** Bytes of html, script and styles, which a browser needs before it paints. */
const maxFirstPaintBytes = 100_000;

let page: BuiltPage;
beforeAll(async () => {
  page = await builtPage();
});
afterAll(() => page[Symbol.asyncDispose]());

function read(name: string): Promise<string> {
  return readFile(join(page.directory, name), "utf8");
}

describe("the files of the page", () => {
  test("are a page, a script, styles, an icon, and the licence of what the script has inside", async () => {
    expect((await readdir(page.directory)).sort()).toEqual([
      "console.css",
      "console.js",
      "icon.svg",
      "index.html",
      "preact-license.txt",
    ]);
    expect(await read("preact-license.txt")).toMatch(/MIT License[^]*Jason Miller/);
  });

  test("are few bytes before the first paint", async () => {
    const texts = await Promise.all(["index.html", "console.js", "console.css"].map(read));
    const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    expect(bytes).toBeGreaterThan(30_000);
    expect(bytes).toBeLessThan(maxFirstPaintBytes);
  });

  test("hold to a policy without inline code, inline styles and other servers", async () => {
    const html = await read("index.html");
    expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=")/);
    const everything = html + (await read("console.js")) + (await read("console.css"));
    expect(everything).not.toMatch(/\beval\(|new Function|@import|url\(/);
    const addresses = [...everything.matchAll(/https?:\/\/[\w.-]+/g)].map(([address]) => address);
    // The names of SVG, MathML and XHTML, which nobody fetches.
    expect(new Set(addresses)).toEqual(new Set(["http://www.w3.org"]));
  });
});
