/**
 * The image of a release: its facts and its SBOM, and that containerd runs its archive.
 *
 * @module-tag full
 */
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { chown, mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, afterAll, beforeAll, expect, test } from "vitest";
import type { ImageFacts } from "../../scripts/release/image.ts";
import { ownNode, root, run, runWell } from "../package/processes.ts";
import { openContainerd } from "../support/containers/daemon.ts";
import { pypiPackages, python } from "../support/pypi-packages.ts";
import { slowPlace } from "../support/sandboxes/quick-place.ts";

const unavailable = 69;
const buildMs = 15 * 60_000;
const version = "7.0.0";
const file = (end: string): string => join(directory, `str-worker-${version}.image.${end}`);

let directory: string;
/** Why there is no image; undefined if there is one. */
let reason: string | undefined;

beforeAll(async () => {
  directory = await mkdtemp(join(slowPlace, "str-release-"));
  const program = join(root, "test/support/containers/make-image.ts");
  const { status, stderr } = await run(ownNode, [program, directory, version], {
    timeoutMs: buildMs,
  });
  if (status === unavailable) reason = stderr.trim().split("\n")[0];
  else if (status !== 0) throw new Error(stderr);
}, buildMs);
afterAll(() => rm(directory, { recursive: true, force: true }));

const needsImage = ({ skip }: Pick<TestContext, "skip">): void => {
  skip(reason !== undefined, reason);
};
const json = async (end: string): Promise<unknown> => JSON.parse(await readFile(file(end), "utf8"));

test("its facts name its size, and the id of what the archive holds", async (context) => {
  needsImage(context);
  const facts = (await json("json")) as ImageFacts;
  expect(facts).toMatchObject({ name: "str-worker", version });
  expect(facts.archiveBytes).toBe((await stat(file("tar.gz"))).size);
  expect(facts.sizeBytes).toBeGreaterThan(facts.archiveBytes);
  const options = { maxBuffer: 2 ** 26 };
  const inArchive = (path: string): Buffer =>
    execFileSync("tar", ["--extract", "--to-stdout", "--file", file("tar.gz"), path], options);
  const [{ Config }] = JSON.parse(inArchive("manifest.json").toString()) as [{ Config: string }];
  const config = inArchive(Config);
  expect(facts.id).toBe(`sha256:${createHash("sha256").update(config).digest("hex")}`);
  expect(config.toString()).toContain(`"org.opencontainers.image.version":"${version}"`);
});

test("its SBOM is CycloneDX, and lists Node, Debian's packages and npm's", async (context) => {
  needsImage(context);
  const { components } = (await json("cdx.json")) as { components: { purl?: string }[] };
  const purls = components.map(({ purl }) => purl ?? "");
  for (const start of [
    "pkg:generic/node@24.",
    "pkg:deb/debian/bubblewrap@",
    "pkg:deb/debian/python3-pip@",
    "pkg:npm/%40aws-sdk/client-s3@",
    "pkg:npm/solclientjs@",
    "pkg:npm/npm@",
  ])
    expect(purls.filter((purl) => purl.startsWith(start))).toHaveLength(1);
  expect(purls.filter((purl) => purl.startsWith("pkg:npm/vitest@"))).toEqual([]);

  const PYTHONPATH = await pypiPackages(context, [
    "cyclonedx-python-lib[json-validation]==11.12.0",
  ]);
  const validation = [
    "import sys",
    "from cyclonedx.schema import SchemaVersion",
    "from cyclonedx.validation.json import JsonStrictValidator",
    "error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())",
    "print(error or 'valid')",
  ].join("\n");
  const env = { PYTHONPATH };
  const { stdout } = await runWell(python, ["-c", validation, file("cdx.json")], { env });
  expect(stdout.trim()).toBe("valid");
});

test("containerd runs demo and doctor of its archive, as docs/containers.md has it", async (context) => {
  needsImage(context);
  await using containerd = await openContainerd(context);
  const env = { ...containerd.variables };
  const ctr = async (...argv: readonly string[]): Promise<string> =>
    (await runWell("ctr", argv, { env })).stdout;
  await runWell("sh", ["-c", 'zcat "$0" | ctr image import -', file("tar.gz")], { env });
  const [image = ""] = (await ctr("image", "ls", "--quiet")).trim().split("\n");
  expect(image).toContain(`str-worker:${version}`);

  const writable = await mkdtemp(join(slowPlace, "str-volumes-"));
  try {
    const mounts: string[] = [];
    for (const path of ["/sandbox/work", "/sam/artifacts", "/tmp"]) {
      const source = join(writable, path);
      await mkdir(source, { recursive: true });
      await chown(source, 1000, 1000);
      mounts.push("--mount", `type=bind,src=${source},dst=${path},options=rbind:rw`);
    }
    const seccomp = join(root, "deploy/seccomp.json");
    const flags = ["--read-only", "--seccomp", "--seccomp-profile", seccomp, ...mounts];
    const inside = (...command: readonly string[]): Promise<string> =>
      ctr("run", "--rm", ...flags, image, `str-${process.pid}`, ...command);
    const doctor = await inside("str-worker", "doctor");
    for (const check of ["user-namespaces", "network-namespace", "seccomp", "guard", "egress"])
      expect(doctor).toMatch(new RegExp(`^held +${check}`, "m"));
    expect(await inside("harness", "demo")).toContain("8 of 8 calls ended as they should");
  } finally {
    await rm(writable, { recursive: true, force: true });
  }
});
