/**
 * What installers get of the operator's registries, and what is taken out of their output.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lastLines } from "../../../worker/environments/build/run.ts";
import { sourceOptions } from "../../../worker/environments/build/python.ts";
import { AllowedPackages } from "../../../worker/environments/allow.ts";
import { Redaction } from "../../../worker/environments/registry/redaction.ts";
import { RegistrySettings } from "../../../worker/environments/registry/settings.ts";
import { callBounded } from "../../support/threads/bounded-call.ts";

let base: string;
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), "str-registry-"));
  await mkdir(join(base, "links"));
  await mkdir(join(base, "wheels"));
  await writeFile(
    join(base, "npmrc"),
    "@s:registry=https://u:pw12@n.example\n//n.example/:_authToken=tok-en\n",
  );
});
afterAll(() => rm(base, { recursive: true }));

function settings(environment: Record<string, string>, npmrc = false): RegistrySettings {
  return new RegistrySettings({
    environment,
    wheelsDir: join(base, "wheels"),
    netrcFile: undefined,
    npmrcFile: npmrc ? join(base, "npmrc") : undefined,
  });
}

const valuesFor = async (environment: Record<string, string>, installer: "pip" | "uv" | "npm") =>
  Object.fromEntries((await settings(environment).accessOf(installer)).environment);

describe("an installer", () => {
  const worker = {
    PATH: "/bin",
    HOME: "/root",
    AWS_SECRET_ACCESS_KEY: "x",
    PYTHONPATH: "/y",
    LD_PRELOAD: "z",
  };

  test("sees the variables of its registries, and no others", async () => {
    const own = {
      PIP_INDEX_URL: "https://a",
      HTTPS_PROXY: "http://p",
      no_proxy: "n",
      NPM_CONFIG_REGISTRY: "https://r",
    };
    expect(await valuesFor({ ...worker, ...own }, "pip")).toEqual({
      PIP_INDEX_URL: "https://a",
      HTTPS_PROXY: "http://p",
      NO_PROXY: "n",
    });
    expect(await valuesFor({ ...worker, ...own }, "npm")).toEqual({
      NPM_CONFIG_REGISTRY: "https://r",
      HTTPS_PROXY: "http://p",
      NO_PROXY: "n",
    });
    const lower = { npm_config_registry: "https://r", npm_config_cache: "/root/.npm" };
    expect(await valuesFor(lower, "npm")).toEqual({ NPM_CONFIG_REGISTRY: "https://r" });
  });

  test("gets the index of the other Python installer where it has none", async () => {
    expect(
      await valuesFor({ PIP_INDEX_URL: "https://a", PIP_EXTRA_INDEX_URL: "https://b" }, "uv"),
    ).toEqual({
      UV_INDEX_URL: "https://a",
      UV_EXTRA_INDEX_URL: "https://b",
    });
    expect(await valuesFor({ UV_DEFAULT_INDEX: "https://a" }, "pip")).toEqual({
      PIP_INDEX_URL: "https://a",
    });
    expect(
      await valuesFor({ UV_INDEX_URL: "https://a", PIP_INDEX_URL: "https://b" }, "uv"),
    ).toEqual({
      UV_INDEX_URL: "https://a",
    });
    const named = {
      UV_INDEX: "corp=https://c",
      UV_INDEX_CORP_PASSWORD: "secret",
      UV_INDEX_CORP_USERNAME: "me",
    };
    expect(await valuesFor(named, "uv")).toEqual(named);
    expect(await valuesFor(named, "pip")).toEqual({});
  });

  test("finds files and directories of the host inside", async () => {
    const links = `${join(base, "links")} https://x/simple ${join(base, "none")}`;
    const certificate = join(base, "own.pem");
    await writeFile(certificate, "");
    const access = await settings({ PIP_FIND_LINKS: links, PIP_CERT: certificate }).accessOf("pip");
    expect(Object.fromEntries(access.environment)).toEqual({
      PIP_FIND_LINKS: "/sandbox/registry/pip_find_links-0 https://x/simple",
      PIP_CERT: "/sandbox/registry/pip_cert",
    });
    expect(access.shares).toEqual([
      { path: join(base, "links"), target: "/sandbox/registry/pip_find_links-0" },
      { path: certificate, target: "/sandbox/registry/pip_cert" },
      { path: join(base, "wheels"), target: "/sandbox/registry/wheels" },
    ]);
    expect(access.wheels).toBe("/sandbox/registry/wheels");
    expect((await settings({}).accessOf("npm")).wheels).toBeUndefined();
  });

  test("gets as options what it reads no variable of", () => {
    const options = (installer: string, environment: Record<string, string>) =>
      sourceOptions(installer, new Map(Object.entries(environment))).join(" ");
    expect(options("uv", { PIP_ONLY_BINARY: "a,b", PIP_NO_BINARY: ":none:" })).toBe(
      "--only-binary a --only-binary b --no-binary :none:",
    );
    expect(options("uv", { PIP_FIND_LINKS: "/l https://x", UV_NO_INDEX: "true" })).toBe(
      "--no-index --find-links /l --find-links https://x",
    );
    expect(options("uv", { UV_NO_BUILD: "1" })).toBe("--only-binary :all:");
    expect(options("pip", { UV_NO_BUILD: "1", PIP_NO_BINARY: "a" })).toBe("--only-binary :all:");
    expect(options("pip", { UV_NO_BUILD: "0" })).toBe("");
  });

  test("cannot be started without the file that is named", async () => {
    const options = {
      environment: {},
      wheelsDir: "",
      netrcFile: "/no/netrc",
      npmrcFile: undefined,
    };
    await expect(new RegistrySettings(options).accessOf("pip")).rejects.toThrow(
      "PACKAGE_NETRC_FILE names a file that cannot be read",
    );
    await expect(settings({ PIP_CERT: "/no/file.pem" }).accessOf("pip")).rejects.toThrow(
      "PIP_CERT names no file",
    );
    await expect(settings({ npm_config_cafile: "own.pem" }).accessOf("npm")).rejects.toThrow(
      "NPM_CONFIG_CAFILE names no file by its absolute path",
    );
  });
});

describe("the fingerprint of registries", () => {
  const of = (environment: Record<string, string>, runtime: "python" | "node" = "python") =>
    settings(environment).fingerprint(runtime);

  test("changes with what decides what is installed", async () => {
    const plain = await of({});
    expect(await of({ PIP_INDEX_URL: "https://a" })).not.toBe(plain);
    expect(await of({ PIP_ONLY_BINARY: ":all:" })).not.toBe(plain);
    expect(await of({ NPM_CONFIG_REGISTRY: "https://a" })).toBe(plain);
    expect(await of({ NPM_CONFIG_REGISTRY: "https://a" }, "node")).not.toBe(await of({}, "node"));
    const elsewhere = { environment: {}, netrcFile: undefined, npmrcFile: undefined };
    const other = new RegistrySettings({ ...elsewhere, wheelsDir: "/other/wheels" });
    expect(await other.fingerprint("python")).not.toBe(plain);
    expect(await other.fingerprint("node")).toBe(await of({}, "node"));
    expect(await settings({}, true).fingerprint("node")).not.toBe(await of({}, "node"));
  });

  test("stays with other credentials, proxies and certificates", async () => {
    const index = await of({ PIP_INDEX_URL: "https://me:old@a/simple" });
    expect(await of({ PIP_INDEX_URL: "https://you:new@a/simple" })).toBe(index);
    const others = { HTTPS_PROXY: "http://p", PIP_CERT: "/a", PIP_TIMEOUT: "3" };
    expect(await of({ PIP_INDEX_URL: "https://a/simple", ...others })).toBe(index);
  });
});

describe("output of an installer", { tags: "promise-R12" }, () => {
  test("loses credentials of URLs, of files and of variables", () => {
    const redaction = new Redaction(
      ["https://me:p%40ss-word@a/simple", "https://tok_123@b"],
      ["own-secret"],
      ["machine a login anna password netrc-word", "//n/:_authToken=npm_abc\n_password = bmFtZQ"],
    );
    const text =
      "https://x:y@a/z p%40ss-word p@ss-word tok_123 own-secret netrc-word npm_abc bmFtZQ http://a/b";
    expect(redaction.apply(text)).toBe("https://***@a/z *** *** *** *** *** *** *** http://a/b");
  });

  test("loses what is spelled in another way than in its file", () => {
    const quoted = 'machine a login "my user" password "two \\"words\\""\n';
    const auth = Buffer.from("anna:pass:word").toString("base64");
    const npmrc = `//n/:_auth = "${auth}"\n//m/:_password='${Buffer.from("hidden").toString("base64")}'`;
    const redaction = new Redaction(["http://user:pa@ss'wo\"rd@proxy:1"], [], [quoted, npmrc]);
    const text = `my user, two "words", ${auth} anna:pass:word pass:word hidden pa@ss'wo"rd`;
    expect(redaction.apply(text)).toBe("***, ***, *** *** *** *** ***");
    expect(redaction.apply("at http://user:pa@ss@proxy/x@y")).toBe("at http://***@proxy/x@y");
  });

  test("has no half of a secret where its beginning is lost", () => {
    const redaction = new Redaction(["https://me:open-sesame@a"]);
    const lost = { text: "sesame@a\nopen-sesame is it", droppedBytes: 1 };
    const whole = { text: "first\nlast", droppedBytes: 0 };
    expect(lastLines({ stdout: lost, stderr: whole }, redaction)).toBe("*** is it\nfirst\nlast");
    const oneLine = { text: "sesame", droppedBytes: 1 };
    expect(lastLines({ stdout: oneLine, stderr: whole }, redaction)).toBe("first\nlast");
  });

  test.each([
    ["a scheme without end", "a.".repeat(500_000)],
    ["many beginnings", "x://a:".repeat(200_000)],
  ])("is read in the time of its length: %s", async (_, text) => {
    const file = "worker/environments/registry/redaction.ts";
    const { value } = await callBounded(file, "withoutCredentials", text);
    expect(typeof value).toBe("string");
  });

  test("keeps words that are too short for secrets", () => {
    expect(new Redaction(["https://a:b@c"]).apply("a b c http://b")).toBe("a b c http://b");
  });
});

test("allowed packages are compared as their registries compare them", () => {
  const allowed = new AllowedPackages(["My_Package", "@scope/name", "lodash.merge"]);
  expect(() => allowed.require("python", ["my-package", "my.package"])).not.toThrow();
  expect(() => allowed.require("node", ["@scope/name", "lodash.merge"])).not.toThrow();
  for (const name of ["other", "scope/name", "lodash-merge", "my-package"])
    expect(() => allowed.require("node", [name])).toThrow("PACKAGE_ALLOW");
  expect(() => allowed.require("python", ["other"])).toThrow(
    'package "other" is not in PACKAGE_ALLOW',
  );
  expect(() => new AllowedPackages(undefined).require("node", ["any"])).not.toThrow();
});
