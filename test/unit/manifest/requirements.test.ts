/**
 * Requirements of the manifest and of files: their normal form, and that none becomes an option, a
 * URL or a path.
 */
import { test as property, fc } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { readNodeLock } from "../../../worker/environments/node-lock.ts";
import { parseNodeRequirement } from "../../../worker/manifest/requirements/node.ts";
import { parseRequirement } from "../../../worker/manifest/requirements/python.ts";
import {
  formatRequirements,
  parseRequirementsFile,
} from "../../../worker/manifest/requirements/python-file.ts";
import { callBounded } from "../../support/threads/bounded-call.ts";
import { parse, profileNames } from "./fixtures.ts";

const hash = `sha256:${"0".repeat(64)}`;
const otherHash = `sha256:${"1".repeat(64)}`;

describe("a requirement of Python", { tags: "promise-S28" }, () => {
  test.each([
    ["requests", "requests"],
    ["  Requests ", "requests"],
    ["My_Package.Name", "my-package-name"],
    ["a == 1.0", "a==1.0"],
    ["a (>=1, <2)", "a>=1,<2"],
    ["a~=1.4.2,!=1.4.5", "a~=1.4.2,!=1.4.5"],
    ["a[B_c, d]>=1", "a[b-c,d]>=1"],
    ["a [ b , C ] ( >= 1 ) ; os_name > 'x'", "a[b,c]>=1 ; os_name > 'x'"],
    ["a ;python_version<'3.12'", "a ; python_version < '3.12'"],
    ['a>1;(os_name=="nt" or extra == "x")', 'a>1 ; ( os_name == "nt" or extra == "x" )'],
  ])("%j is read as %j", (text, expected) => {
    expect(parseRequirement(text)?.text).toBe(expected);
  });

  test.each([
    ...["", "-a", "--index-url=https://x", "-r other.txt", "-e .", "./a", "../a", "/a", "~a"],
    ...["a @ https://x/a.whl", "a @ file:///a", "git+https://x/a", "https://x/a", "a/b"],
    ...["a.whl", "a.tar.gz", "a.zip", "a 1.0", "a==", "a>=1 --hash=sha256:00", "a>=1 -r x"],
    ...["a\n--index-url=x", "a==1\n", "a\0", "a;", "a ; $HOME == 'x'", "a ; os.name == 'x'"],
    ...["a ; os_name == '--index-url=x -r y'", "a ; os_name == 'x' --pre", "a ; ${X} == 'x'"],
    ...[
      "a==${VERSION}",
      "a#b",
      "a>=1 # comment",
      "a\\",
      "a[b]c",
      "a[-x]",
      "a[",
      "a[]",
      "a[b",
      "a[b]]",
      "ä",
      "a==1;import x",
    ],
    "a".repeat(501),
  ])("%j is refused", (text) => {
    expect(parseRequirement(text)).toBeUndefined();
  });

  const piece = fc.constantFrom(
    ...["a", "B.c", "-", "--index-url", "=", "==1", ">=2", "<3,", " ", "[x]", "(", ")", "; ", "@"],
    ...["os_name", "'linux'", '"', " and ", "https://x", "/", "$", "{", "#", "\\", "\n", ".whl"],
  );
  const pieces = fc.array(piece, { maxLength: 8 }).map((parts) => parts.join(""));
  property.prop([pieces])("is never an option, a URL, a path or two lines", (text) => {
    const parsed = parseRequirement(text)?.text ?? "";
    expect(parsed).not.toMatch(/^-|\s-|[:/\n\r\\$#@]|\.whl$/);
  });
});

describe("text that is no requirement is refused in the time of its length", () => {
  const blanks = " ".repeat(240);
  const texts = [`a${blanks}@`, `a[${"b ,".repeat(80)}${blanks}@`, `a>=1${blanks}(${blanks}@`];

  test("in the manifest of a toolset", { tags: "promise-S32" }, async () => {
    const requirements = Array.from({ length: 60 }, (_, index) => texts[index % texts.length]);
    const tool = { module: "m", function: "f", requirements };
    const bytes = new TextEncoder().encode(JSON.stringify({ version: 1, tools: { x: tool } }));
    const options = { path: "m.yaml", profileNames, prefix: "t__" };
    const { error } = await callBounded(
      "worker/manifest/parse.ts",
      "parseManifest",
      bytes,
      options,
    );
    expect(error).toContain("requirements[59]: expected a requirement");
  });

  test.each([
    ["a line of blanks", `a${" ".repeat(1_000_000)}x`, "has more than 16384 characters"],
    ["continued lines", "a \\\n".repeat(100_000), "has more than 16384 characters"],
    ["signs of comments", `a${" #".repeat(8_000)}\u2028`, undefined],
    ["blanks in many lines", `a${" ".repeat(16_000)}x\n`.repeat(500), "expected a requirement"],
  ])("in a file: %s", async (_, text, problem) => {
    const file = "worker/manifest/requirements/python-file.ts";
    const { error } = await callBounded(file, "parseRequirementsFile", text);
    if (problem === undefined) expect(error).toBeUndefined();
    else expect(error).toContain(`line 1${problem.startsWith("has") ? " " : ": "}${problem}`);
  });

  test("as a range of semver", () => {
    expect(parseNodeRequirement(`a@${"1||".repeat(200)}1`)).toBeUndefined();
  });
});

describe("a requirements file", { tags: "promise-S28" }, () => {
  test("has requirements, hashes, comments and continued lines", () => {
    const text = [
      "# made by hand \\",
      "Requests>=2  # a comment",
      "",
      "b==1 \\",
      `    --hash=${otherHash} \\`,
      `    --hash=${hash}`,
      'c ; sys_platform == "linux"',
    ].join("\r\n");
    expect(formatRequirements(parseRequirementsFile(text))).toBe(
      `b==1 --hash=${hash} --hash=${otherHash}\nc ; sys_platform == "linux"\nrequests>=2\n`,
    );
  });

  test.each([
    ["-r other.txt", "line 1: the option -r is refused"],
    ["a\n-c constraints.txt", "line 2: the option -c is refused"],
    ["-e .", "line 1: the option -e is refused"],
    ["--index-url https://x", "line 1: the option --index-url is refused"],
    ["--extra-index-url=https://x", "the option --extra-index-url is refused"],
    ["--find-links /tmp", "the option --find-links is refused"],
    ["--trusted-host x", "the option --trusted-host is refused"],
    ["a \\\n --config-settings=x=y", "line 1: the option --config-settings is refused"],
    ["a --global-option=x", "the option --global-option is refused"],
    ["a --hash=md5:00", "line 1: expected a requirement"],
    [`a --hash=${hash}x`, "line 1: expected a requirement"],
    ["a @ https://x/a.whl", "line 1: expected a requirement"],
    ["./local", "line 1: expected a requirement"],
    ["https://x/a.whl", "line 1: expected a requirement"],
    ["# fine\n\na==1\nb=1", "line 4: expected a requirement"],
  ])("%j is refused", (text, message) => {
    expect(() => parseRequirementsFile(text)).toThrow(message);
  });
});

describe("a requirement of Node", { tags: "promise-S28" }, () => {
  test.each([
    ["zod", "zod", "*"],
    ["zod@^4.0.0", "zod", "^4.0.0"],
    ["@scope/name@1.x || >=2 <3", "@scope/name", "1.x || >=2 <3"],
    ["@scope/name", "@scope/name", "*"],
  ])("%j is read", (text, name, range) => {
    expect(parseNodeRequirement(text)).toEqual({ name, range });
  });

  test.each([
    ...["", "-g", "--registry", "zod@", "zod@latest", "zod@npm:other@1", "zod@file:.", "@scope"],
    ...["zod@https://x", "git+https://x", "user/repo", "../a", ".a", "_a", "a b", "zod@github:a/b"],
    ...["@-x/y", "@x/-y", "zod@^1\n", "node_modules", `${"a".repeat(215)}`],
  ])("%j is refused", (text) => {
    expect(parseNodeRequirement(text)).toBeUndefined();
  });
});

describe("a package-lock.json", { tags: "promise-S28" }, () => {
  const lock = (packages: object, root: object = { dependencies: { a: "^1.0.0" } }): string =>
    JSON.stringify({ lockfileVersion: 3, packages: { "": root, ...packages } });

  test("loses where its packages were, and what its project is", () => {
    const root = {
      name: "mine",
      scripts: { install: "evil" },
      dependencies: { a: "^1.0.0", other: "npm:@s/real@1" },
      devDependencies: { d: "file:." },
    };
    const entry = { version: "1.0.0", integrity: "sha512-x" };
    const { names, files } = readNodeLock(
      lock(
        {
          "node_modules/a": {
            ...{ ...entry, resolved: "https://registry.npmjs.org/a/-/a-1.0.0.tgz" },
            ...{ license: "MIT", scripts: { install: "evil" }, bundleDependencies: ["c"] },
            dependencies: { c: "1", other: "npm:@s/real@^1.0.0" },
          },
          "node_modules/other": { ...entry, name: "@s/real" },
          "node_modules/a/node_modules/@s/b": { ...entry, name: "@s/real" },
          "node_modules/a/node_modules/c": { version: "1.0.0", inBundle: true },
        },
        root,
      ),
    );
    expect(names).toEqual(["@s/real", "a", "c"]);
    const bundled = { version: "1.0.0", inBundle: true, integrity: `sha512-${"A".repeat(86)}==` };
    const { dependencies } = root;
    const kept = { name: "environment", version: "0.0.0", dependencies };
    expect(JSON.parse(files.get("package.json")!)).toEqual({ ...kept, private: true });
    expect(JSON.parse(files.get("package-lock.json")!)).toMatchObject({
      packages: {
        "": kept,
        "node_modules/a": entry,
        "node_modules/a/node_modules/c": bundled,
      },
    });
    expect(files.get("package-lock.json")).not.toMatch(/resolved|evil|mine|license/);
  });

  test.each([
    ["{", "is not JSON"],
    [JSON.stringify({ lockfileVersion: 1 }), "expected a lockfile of version 2 or 3"],
    [lock({ "node_modules/a": { link: true, resolved: "a" } }), "is a link"],
    [lock({ "node_modules/a": { version: "1.0.0" } }), "has no integrity"],
    [lock({ "node_modules/a": { version: "1.0.0", inBundle: true } }), "has no integrity"],
    [
      lock({
        "node_modules/a": { version: "1.0.0", integrity: "x" },
        "node_modules/a/node_modules/b": { version: "1.0.0", inBundle: true },
      }),
      "has no integrity",
    ],
    ...Object.entries({
      dependencies: { b: "git+https://x/b" },
      optionalDependencies: { b: "https://x/b.tgz" },
      peerDependencies: { b: "file:../b" },
      peerDependenciesMeta: { b: { optional: "yes" } },
      bundleDependencies: ["../b"],
      bin: { b: "../../b" },
      os: [{}],
      hasInstallScript: "yes",
    }).map(([key, value]) => [
      lock({ "node_modules/a": { version: "1.0.0", integrity: "x", [key]: value } }),
      `"${key}" with a value that is refused`,
    ]),
    [lock({ "node_modules/a": { version: "1.0.0", integrity: "x", bin: { b: "/b" } } }), '"bin"'],
    [lock({ [`node_modules/a${"/node_modules/a".repeat(200)}`]: {} }), "has a path of more than"],
    [
      lock({ "node_modules/a": { version: "1.0.0", integrity: "x", hasShrinkwrap: true } }),
      "has packages of its own npm-shrinkwrap.json",
    ],
    [lock({ "../a": { version: "1.0.0" } }), "is not below node_modules"],
    [lock({ "node_modules/../a": { version: "1.0.0" } }), "is not below node_modules"],
    [
      lock({ "node_modules/a": { version: "1.0.0", resolved: "git+ssh://x" } }),
      "not from a registry",
    ],
    [
      lock({ "node_modules/a": { version: "1.0.0", resolved: "file:../a" } }),
      "not from a registry",
    ],
    [lock({ "node_modules/a": { version: "file:a" } }), "has no version of a registry"],
    [lock({ "node_modules/a": { version: "1.0.0", name: "../a" } }), "has no name of a package"],
    [lock({}, { dependencies: { a: "file:a" } }), "of the project: accepted are semver ranges"],
    [
      lock({}, { dependencies: { a: "npm:b@file:x" } }),
      "of the project: accepted are semver ranges",
    ],
    [
      lock({}, { optionalDependencies: { a: "https://x" } }),
      "of the project: accepted are semver ranges",
    ],
  ])("%s is refused", (text, message) => {
    expect(() => readNodeLock(text)).toThrow(message);
  });
});

describe("the packages of an entry", { tags: "promise-S28" }, () => {
  const entry = (fields: string): string => `version: 1\ntools: {a: {${fields}}}`;
  const python = (fields: string): string => entry(`module: m, function: f, ${fields}`);
  const node = (fields: string): string =>
    entry(`runtime: node, module: a.ts, function: f, ${fields}`);
  const packagesOf = (text: string) => parse(text).manifest.tools.get("a")?.packages;

  test("come together in normal form", () => {
    expect(
      packagesOf(python('package: My_Pkg, version: ">= 1", requirements: ["b", "A[x]>2", b]')),
    ).toEqual({
      requirements: ["a[x]>2", "b", "my-pkg>=1"],
      requirementsFile: undefined,
      lockfile: undefined,
      runsScripts: false,
    });
    expect(
      packagesOf(node('package: "@s/n", requirements: [zod@^4, zod@^4], install_scripts: true')),
    ).toEqual(expect.objectContaining({ requirements: ["@s/n@*", "zod@^4"], runsScripts: true }));
    expect(packagesOf(python("lockfile: a/uv.lock"))?.lockfile).toBe("a/uv.lock");
    expect(packagesOf(python("description: none"))).toBeUndefined();
  });

  test.each([
    [python('package: "-r"'), "package: expected the name"],
    [python('package: "--index-url=x"'), "package: expected the name"],
    [python('package: "a @ https://x"'), "package: expected the name"],
    [python('package: "a[b]"'), "package: expected the name"],
    [python("package: a.whl"), "package: expected the name"],
    [python('package: a, version: "1.0"'), "version: expected a PEP 440"],
    [python('package: a, version: ">=1 --pre"'), "version: expected a PEP 440"],
    [python('version: ">=1"'), 'version: allowed only together with "package"'],
    [python('requirements: ["-e ."]'), "requirements[0]: expected a requirement"],
    [python('requirements: ["a @ file:///x"]'), "requirements[0]: expected a requirement"],
    [python("requirements: a"), "requirements: expected a list"],
    [python("requirements_file: ../x.txt"), "requirements_file: expected the path"],
    [python("requirements_file: /etc/passwd"), "requirements_file: expected the path"],
    [python("requirements_file: a/../../x"), "requirements_file: expected the path"],
    [python('requirements_file: "-x"'), "requirements_file: expected the path"],
    [python("lockfile: poetry.lock"), "lockfile: expected the path of a uv.lock"],
    [python("lockfile: uv.lock, package: a"), "a lockfile names every package itself"],
    [
      python("install_scripts: true, package: a"),
      "install_scripts: allowed only with runtime node",
    ],
    [node("install_scripts: true"), "install_scripts: allowed only together with packages"],
    [node('package: a, version: "latest"'), "version: expected a semver range"],
    [node('package: a, version: "file:."'), "version: expected a semver range"],
    [node('package: "--global"'), "package: expected the name of an npm package"],
    [node("requirements: [a@npm:b]"), "requirements[0]: expected a package"],
    [node("requirements: [a@1, b@1, a@2]"), 'requirements: "a" has two ranges'],
    [node('package: a, version: "1", requirements: [a@2]'), 'requirements: "a" has two ranges'],
    [node("requirements_file: a.txt"), "requirements_file: allowed only with runtime python"],
    [node("lockfile: yarn.lock"), "lockfile: expected the path of a package-lock.json"],
  ])("%j are refused", (text, message) => {
    expect(() => parse(text)).toThrow(message);
  });
});
