/**
 * How often installations are shared with sandboxes, and for how long.
 */
import { expect, test } from "vitest";
import { SharedInstallations, maxUnused } from "../../../worker/runners/installations.ts";

function setUp() {
  const shared: string[] = [];
  const installations = new SharedInstallations({
    share: async (path) => {
      shared.push(path);
      return {
        source: `/copy${path}`,
        [Symbol.asyncDispose]: async () => void shared.splice(shared.indexOf(path), 1),
      };
    },
  });
  const share = (key: string) => installations.share({ dir: `/${key}`, key });
  return { installations, shared, share };
}

test("an installation is shared once for all sandboxes, at once or one after the other", async () => {
  const { installations, shared, share } = setUp();
  const both = await Promise.all([share("a"), share("a")]);
  expect(both.map(({ source }) => source)).toEqual(["/copy/a", "/copy/a"]);
  for (const each of both) await each[Symbol.asyncDispose]();
  await (await share("a"))[Symbol.asyncDispose]();
  expect(shared).toEqual(["/a"]);
  await installations[Symbol.asyncDispose]();
  expect(shared).toEqual([]);
});

test("the longest unused ones are given up, and none that a sandbox has", async () => {
  const { shared, share } = setUp();
  const used = await share("used");
  for (let number = 0; number <= maxUnused; number++)
    await (await share(`n${number}`))[Symbol.asyncDispose]();
  expect(shared).toHaveLength(maxUnused + 1);
  expect(shared.slice(0, 2)).toEqual(["/used", "/n1"]);
  await used[Symbol.asyncDispose]();
  expect(shared).not.toContain("/n1");
  expect(shared).toContain("/used");
});
