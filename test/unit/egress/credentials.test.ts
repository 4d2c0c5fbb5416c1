import { execFileSync } from "node:child_process";
import { link, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { CredentialValues, maxValueBytes } from "../../../worker/egress/edge/credentials.ts";
import type { CredentialSource, CredentialUse } from "../../../worker/protocol/credential.ts";

const header: CredentialUse = { kind: "header", header: "X-Key", template: "k={value};" };
const environment = { OTHER: "s$&cret ü" };
const fromEnv: CredentialSource = { kind: "env", name: "OTHER" };

const credentialOf = (use: CredentialUse, source = fromEnv) => ({
  ...{ name: "other", use, source },
  hosts: [],
});

const head = {
  target: "/a?key=mine&k%65y=too&b=c?d",
  headers: [
    ["x-key", "mine"],
    ["X-Key", "again"],
    ["authorization", "mine"],
    ["Accept", "*/*"],
  ],
} as const;

describe("a credential is", () => {
  test.each<[CredentialUse, object]>([
    [
      header,
      {
        target: head.target,
        headers: [
          ["authorization", "mine"],
          ["Accept", "*/*"],
          ["X-Key", "k=s$&cret ü;"],
        ],
      },
    ],
    [
      { kind: "basic", user: "alice" },
      {
        target: head.target,
        headers: [
          ["x-key", "mine"],
          ["X-Key", "again"],
          ["Accept", "*/*"],
          ["Authorization", `Basic ${Buffer.from("alice:s$&cret ü").toString("base64")}`],
        ],
      },
    ],
    [
      { kind: "query", parameter: "key" },
      { target: "/a?b=c?d&key=s%24%26cret%20%C3%BC", headers: head.headers },
    ],
  ])("in place of what the tool sends: %j", async (use, expected) => {
    const values = new CredentialValues(environment);
    expect(await values.add(credentialOf(use), head)).toMatchObject(expected);
  });

  test("hidden where a host repeats it, unless it is so short that it may be anything", async () => {
    const values = new CredentialValues({ ...environment, SHORT: "1234567" });
    const hidden = values.placeholderOf({ name: "other" });
    const query = credentialOf({ kind: "query", parameter: "key" });
    const { hide } = await values.add(query, head);
    expect(hide("/a/?key=s%24%26cret%20%C3%BC&x=s$&cret ü")).toBe(`/a/?key=${hidden}&x=${hidden}`);
    const basic = await values.add(credentialOf({ kind: "basic", user: "alice" }), head);
    const pair = Buffer.from("alice:s$&cret ü").toString("base64");
    expect(basic.hide(`Basic ${pair}`)).toBe(`Basic ${hidden}`);
    const short = await values.add(credentialOf(header, { kind: "env", name: "SHORT" }), head);
    expect(short.hide("1234567")).toBe("1234567");
  });

  test("exchanged for its placeholder in headers, which nobody can guess", async () => {
    const [values, others] = [new CredentialValues(environment), new CredentialValues(environment)];
    const credential = credentialOf({ kind: "placeholder", variable: "TOKEN" });
    const placeholder = values.placeholderOf(credential);
    expect(placeholder).toMatch(/^placeholder-[0-9a-f]{32}$/);
    expect(others.placeholderOf(credential)).not.toBe(placeholder);
    expect(values.placeholderOf({ name: "else" })).not.toBe(placeholder);
    const target = `/${placeholder}`;
    const headers = [["A", `x ${placeholder}${placeholder}`]] as const;
    expect(await values.add(credential, { target, headers })).toMatchObject({
      target,
      headers: [["A", "x s$&cret üs$&cret ü"]],
    });
  });
});

describe("the value of a file", () => {
  async function file(content: string): Promise<string> {
    const directory = await mkdtemp(join(tmpdir(), "credential-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    await writeFile(join(directory, "value"), content);
    return join(directory, "value");
  }
  const sent = async (
    name: string,
    values = new CredentialValues({}),
  ): Promise<string | undefined> => {
    const credential = credentialOf(header, { kind: "file", name });
    return (await values.add(credential, { target: "/", headers: [] })).headers[0]?.[1];
  };

  test("is read anew, without the newline at its end", async () => {
    const path = await file("first\n");
    const values = new CredentialValues({});
    expect(await sent(path, values)).toBe("k=first;");
    await writeFile(path, "second\r\n");
    expect(await sent(path, values)).toBe("k=second;");
  });

  test.each([
    ["", /is empty/],
    ["a\nX-Evil: b\n", /has control characters/],
    ["a\rb", /has control characters/],
    ["a\0b", /has control characters/],
    ["planted \u0100", /has characters that a header cannot have/],
    ["planted".repeat(maxValueBytes), /at most/],
  ])("is refused without a word of it: %j", async (content, message) => {
    const path = await file(content);
    const failure: Error = await sent(path).then(
      () => new Error("sent"),
      (error: Error) => error,
    );
    expect(failure.message).toMatch(message);
    expect(failure.message).toMatch(/^the credential "other" cannot be used/);
    expect(failure.message).not.toMatch(/planted|Evil/);
    expect(failure.message).not.toContain(path);
  });

  test(
    "is refused where it is the worker's own, by whatever path",
    { tags: "promise-S39" },
    async () => {
      const path = await file("planted");
      await symlink(dirname(path), join(dirname(path), "link"));
      await link(path, `${path}.twin`);
      const values = new CredentialValues({}, [
        "/no/such/file",
        join(dirname(path), "link", "value"),
      ]);
      for (const other of [path, `${path}.twin`])
        await expect(sent(other, values)).rejects.toThrow(/the worker's own/);
      await writeFile(`${path}.other`, "other");
      expect(await sent(`${path}.other`, values)).toBe("k=other;");
    },
  );

  test("is refused where there is none, and nobody waits for a pipe", async () => {
    const path = await file("");
    execFileSync("/usr/bin/mkfifo", [`${path}.pipe`]);
    await expect(sent(`${path}.pipe`)).rejects.toThrow(/regular file/);
    await expect(sent("/dev/zero")).rejects.toThrow(/regular file/);
    await expect(sent(`${path}.none`)).rejects.toThrow(/cannot be read/);
  });
});
