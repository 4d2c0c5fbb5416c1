/**
 * The operator's own profiles: what their file may say, and how it is told what is wrong with it.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { limitFacts, limitNames } from "../../../worker/protocol/resource-limits.ts";
import { publicNetwork } from "../../../worker/protocol/network-rules.ts";
import {
  type Profiles,
  builtInProfiles,
  builtInProfilesWith,
} from "../../../worker/sandbox/profile.ts";
import {
  ProfilesError,
  loadProfiles,
  maxOwnProfiles,
  maxProfilesBytes,
  parseProfiles,
  profilesJsonSchema,
} from "../../../worker/sandbox/profiles-file.ts";

const MiB = 1024 * 1024;

const parse = (text: string) => parseProfiles(Buffer.from(text), "p.yaml");

/** A file with one profile `x` of these fields. */
const withFields = (fields: string): string => `version: 1\nprofiles:\n  x:\n    ${fields}\n`;

function problemsOf(text: string): readonly string[] {
  try {
    parse(text);
  } catch (error) {
    expect(error).toBeInstanceOf(ProfilesError);
    return (error as ProfilesError).message.split("\n");
  }
  throw new Error(`parsed: ${text}`);
}

describe("a good file", () => {
  test("adds its profiles to the built-in ones, with what it does not say as it is there", () => {
    const profiles = parse(`version: 1
profiles:
  training:
    extends: standard
    network: none
    auto_start: pool
    limits: {memory_mb: 8192, cpu_seconds: 3600, status_kb: 16}
  reader:
    extends: restrictive
    reads_etc: true
    has_var: true
    terminals: true
    system_calls: strict
    auto_start: template
    backend:
    limits:
`);
    const [standard, restrictive] = ["standard", "restrictive"].map((name) =>
      builtInProfiles.get(name),
    );
    expect([...profiles.keys()]).toEqual([...builtInProfiles.keys(), "training", "reader"]);
    expect(profiles.get("training")).toEqual({
      ...standard!,
      name: "training",
      network: "none",
      autoStart: "pool",
      limits: {
        ...standard!.limits,
        memoryBytes: 8192 * MiB,
        cpuSeconds: 3600,
        statusBytes: 16 * 1024,
      },
    });
    expect(profiles.get("reader")).toEqual({
      ...restrictive!,
      name: "reader",
      readsEtc: true,
      hasVar: true,
      terminals: true,
      systemCalls: "strict",
      autoStart: "template",
    });
  });

  test("can choose the backend for a profile that does not extend restrictive", () => {
    const profiles = parse(withFields("{extends: permissive, backend: host}"));
    expect(profiles.get("x")?.backend).toBe("host");
  });

  test("takes the network of standard from the configuration, where it says none itself", () => {
    const text = `version: 1
profiles:
  silent: {extends: standard}
  said: {extends: standard, network: none}
  wide: {extends: permissive}
  bare: {extends: standard, backend: host}
`;
    const networks = (profiles: Profiles): unknown =>
      ["standard", "silent", "said", "wide", "bare"].map((name) => profiles.get(name)?.network);
    expect(networks(parse(text))).toEqual([publicNetwork, publicNetwork, "none", "host", "host"]);
    const wide = parseProfiles(Buffer.from(text), "p.yaml", builtInProfilesWith("host"));
    expect(networks(wide)).toEqual(["host", "host", "none", "host", "host"]);
  });

  test("has no network with a backend that has none, said or not", () => {
    for (const said of ["", ", network: none", ", network:"]) {
      const profiles = parse(withFields(`{extends: permissive, backend: docker${said}}`));
      expect(profiles.get("x")?.network).toBe("none");
    }
  });

  test.each(limitNames)("has the bounds of %s in its own unit, from least to greatest", (name) => {
    const { field, scale, min, max } = limitFacts[name];
    for (const value of [min, max]) {
      const profiles = parse(withFields(`{extends: standard, limits: {${field}: ${value}}}`));
      expect(profiles.get("x")?.limits[name]).toBe(value * scale);
    }
    for (const value of [min - 1, max + 1, min + 0.5]) {
      expect(problemsOf(withFields(`{extends: standard, limits: {${field}: ${value}}}`))).toEqual([
        expect.stringContaining(
          `profile "x": limits.${field}: expected a whole number, ${min} to ${max}, found ${value}`,
        ),
      ]);
    }
  });
});

describe("a file is refused with the place of what is wrong:", () => {
  const shape = 'a map with "version" and "profiles"';
  const keys =
    "extends, backend, network, reads_etc, has_var, terminals, system_calls, auto_start, limits";
  const limitKeys = limitNames.map((name) => limitFacts[name].field).join(", ");
  test.for<[string, string, string[]]>([
    ["empty", "", [`1:1: expected ${shape}, found nothing`]],
    ["a list", "- x", [`1:1: expected ${shape}, found a list`]],
    [
      "no version, no profiles, and what is not known",
      "profile: {}",
      [
        "1:1: profile: unknown key; the keys are version, profiles",
        "1:1: version: required: 1, the version of the format that this worker reads",
        "1:1: profiles: required: a map of profile names",
      ],
    ],
    [
      "a built-in name",
      "version: 1\nprofiles:\n  standard: {extends: permissive}",
      ['3:3: profile "standard": is built in and cannot be defined anew; choose another name'],
    ],
    [
      "a name that is none",
      "version: 1\nprofiles:\n  -x: {extends: standard}",
      ['3:3: profile "-x": the name does not start with a letter or digit'],
    ],
    [
      "no base",
      withFields("network: none"),
      ['3:3: profile "x": extends: required: one of restrictive, standard, permissive'],
    ],
    [
      "an own base",
      withFields("extends: x"),
      ['4:14: profile "x": extends: expected one of restrictive, standard, permissive, found "x"'],
    ],
    [
      "no isolation in the name of restrictive",
      withFields("{extends: restrictive, backend: host}"),
      [
        '4:37: profile "x": backend: host isolates nothing: not for a profile that extends restrictive',
      ],
    ],
    ...["gvisor", "containerd", "kata", "docker"].map<[string, string, string[]]>((backend) => [
      `a network with the backend ${backend}`,
      withFields(`{extends: standard, backend: ${backend}, network: {allow: [example.com]}}`),
      [
        `4:${36 + backend.length}: profile "x": network: the backend ${backend} has no networks: expected none`,
      ],
    ]),
    [
      "that, and more of the same profile",
      withFields("{extends: restrictive, backend: host, limits: {cpus: 1.5}, network: all}"),
      [
        '4:37: profile "x": backend: host isolates nothing: not for a profile that extends restrictive',
        '4:58: profile "x": limits.cpus: expected a whole number, 1 to 1024, found 1.5',
        '4:73: profile "x": network: expected one of none, public, host, or a map with "allow" or "public", found "all"',
      ],
    ],
    [
      "everything at once",
      withFields(
        "{extends: standard, network: all, reads_etc: 1, has_vars: true, auto_start: cold, limits: {memory_md: 5, cpus: 0}}",
      ),
      [
        '4:34: profile "x": network: expected one of none, public, host, or a map with "allow" or "public", found "all"',
        '4:50: profile "x": reads_etc: expected true or false, found 1',
        `4:53: profile "x": has_vars: unknown key; the keys are ${keys}`,
        '4:81: profile "x": auto_start: expected one of pool, template, found "cold"',
        `4:96: profile "x": limits.memory_md: unknown key; the keys are ${limitKeys}`,
        '4:116: profile "x": limits.cpus: expected a whole number, 1 to 1024, found 0',
      ],
    ],
    ["no YAML", "version: [1", ["1:12: Flow sequence"]],
    ["a key twice", "version: 1\nversion: 1", ['2:1: key "version" is already in line 1']],
  ])("%s", ([, text, problems]) => {
    const found = problemsOf(text);
    expect(found).toHaveLength(problems.length);
    for (const [index, problem] of problems.entries()) {
      expect(found[index]).toContain(`p.yaml:${problem}`);
    }
  });

  test("too many profiles", () => {
    const names = Array.from({ length: maxOwnProfiles + 1 }, (_, i) => `p${i}`);
    const text = JSON.stringify({
      version: 1,
      profiles: Object.fromEntries(names.map((name) => [name, { extends: "standard" }])),
    });
    expect(problemsOf(text)).toEqual([
      expect.stringContaining(`profiles: expected at most ${maxOwnProfiles} profiles, found 33`),
    ]);
  });
});

describe("the file of a worker", () => {
  async function temporaryDirectory(): Promise<string> {
    const directory = await mkdtemp(join(tmpdir(), "str-profiles-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    return directory;
  }

  test("is read where it is named, and else there are the built-in profiles", async () => {
    expect(await loadProfiles(undefined)).toBe(builtInProfiles);
    const path = join(await temporaryDirectory(), "profiles.yaml");
    await writeFile(path, withFields("{extends: standard}"));
    expect((await loadProfiles(path)).has("x")).toBe(true);
  });

  test("that is missing, no file, or too large is named with the reason", async () => {
    const directory = await temporaryDirectory();
    const [missing, folder, large] = ["missing", "folder", "large"].map((name) =>
      join(directory, name),
    ) as [string, string, string];
    await mkdir(folder);
    await writeFile(large, " ".repeat(maxProfilesBytes + 1));
    await expect(loadProfiles(missing)).rejects.toThrow(`${missing}: cannot be read: ENOENT`);
    for (const path of [folder, large])
      await expect(loadProfiles(path)).rejects.toThrow(
        `${path}: expected a regular file of at most ${maxProfilesBytes} bytes`,
      );
  });
});

test("docs/profiles.schema.json is the schema of the file", async () => {
  const url = new URL("../../../docs/profiles.schema.json", import.meta.url);
  expect(JSON.parse(await readFile(url, "utf8"))).toEqual(profilesJsonSchema());
});
