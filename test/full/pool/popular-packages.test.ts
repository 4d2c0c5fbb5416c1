/**
 * Children of a template that has loaded popular packages draw no two random numbers alike, and end
 * at once.
 *
 * @module-tag full
 */
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { type Draw, type Draws, alike } from "../../support/sandboxes/draws.ts";
import { pypiPackages } from "../../support/pypi-packages.ts";
import { templateHosts } from "../../support/sandboxes/template-host.ts";

/** Versions of one day, so that a failure is ours. */
const packages = [
  ...["aiohttp==3.14.5", "apsw==3.54.1.0", "bcrypt==5.0.0", "cryptography==50.0.2"],
  ...["faker==40.54.0", "fastuuid==0.14.0", "httpx==0.28.1", "networkx==3.6.1", "numpy==2.4.6"],
  ...["pandas==3.1.1", "paramiko==5.1.0", "pillow==13.0.0", "psycopg2-binary==2.9.13"],
  ...["pycryptodome==4.4.0", "pymongo==4.20.0", "pynacl==1.6.2", "python-ulid==4.1.0"],
  ...["randomgen==2.5.1", "requests==2.34.2", "shortuuid==1.0.13", "sqlalchemy==2.1.9"],
  ...["ulid-transform==2.2.9", "uuid-utils==1.2.0"],
];

const openHost = templateHosts();
const fixtures = fileURLToPath(new URL("../../fixtures/packages/", import.meta.url));

// On one processor, as `restrictive` has it, numpy starts no threads.
const profile = "restrictive";

test(
  "no two of 50 children draw alike from any generator of popular packages",
  { tags: "promise-W1" },
  async (context) => {
    const host = await openHost(context, {
      files: {},
      profile,
      toolsFrom: fixtures,
      module: "package_generators",
      packages: await pypiPackages(context, packages),
    });
    await using template = await host.openTemplate();
    const drawn: Draw[] = [];
    for (let count = 0; count < 50; count++) {
      const { result } = await host.call<Draws>(template, "tell");
      if (count === 0) drawn.push(result.imported);
      drawn.push(result.drawn);
    }
    expect(drawn).toHaveLength(51);
    expect(Object.keys(drawn[0]!).length).toBeGreaterThan(30);
    expect(alike(drawn)).toEqual({});
  },
);

test("a call that does nothing touches little of what pandas has loaded", async (context) => {
  const source =
    "import sys\nsys.path.insert(0, '/packages')\nimport pandas\ndef run():\n    return {}\n";
  const host = await openHost(context, {
    files: { "tool.py": source },
    profile,
    packages: await pypiPackages(context, packages),
  });
  await using template = await host.openTemplate();
  const { report } = await host.call(template, "run");
  expect(report.exitCode).toBe(0);
  // The interpreter's end would touch nearly all of it: some 40 MiB.
  expect(report.usage.peakMemoryBytes ?? 0).toBeLessThan(16 * 1024 * 1024);
});

describe("there is no template of a module that holds", { tags: "promise-W1" }, () => {
  test.for([
    ["a bit generator that numpy does not know", "held = randomgen.Xoshiro256()", "Xoshiro256"],
    ["a seed sequence", "held = numpy.random.SeedSequence()", "a SeedSequence"],
    [
      "the seed sequence of a generator",
      "held = numpy.random.SeedSequence(); also = numpy.random.default_rng(held)",
      "a SeedSequence",
    ],
    [
      "numpy's own generator of another kind",
      "numpy.random.set_bit_generator(numpy.random.PCG64())",
      "can only re-seed",
    ],
    ["a copy of SQLite that is out of reach", "import apsw", "apsw has a generator"],
    ["a generator of C++", "import ulid_transform", "ulid_transform has a generator"],
  ] as const)("%s", async ([, source, reason], context) => {
    const imports = "import sys\nsys.path.insert(0, '/packages')\nimport numpy, randomgen\n";
    const host = await openHost(context, {
      profile,
      files: { "tool.py": `${imports}${source}\ndef run():\n    return {}\n` },
      packages: await pypiPackages(context, packages),
    });
    await expect(host.openTemplate()).rejects.toMatchObject({
      isUnfit: true,
      message: expect.stringContaining(reason),
    });
  });
});
