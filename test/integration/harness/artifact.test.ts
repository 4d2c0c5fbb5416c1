/**
 * `harness artifact` with each store that worker and agents can share.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readFile, readdir, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { S3Error } from "../../../harness/fakes/s3/errors.ts";
import { gcsVariables } from "../../../harness/fakes/gcs/variables.ts";
import { s3Variables as variablesOf } from "../../../harness/fakes/s3/variables.ts";
import { useFakeGcs } from "../../support/gcs.ts";
import { useFakeS3 } from "../../support/s3.ts";
import { CliProcess, CliRun, type CliResult, runCli } from "./cli-process.ts";

const bucket = "artifacts";
const server = useFakeS3({ buckets: [bucket] });
const gcsServer = useFakeGcs({ buckets: [bucket] });
const MiB = 1024 * 1024;

type Variables = Readonly<Record<string, string>>;

/** Variables of the stores; another one is another row. */
const stores: readonly [kind: string, () => Promise<Variables>, tags: string[]][] = [
  ["filesystem", filesystemVariables, []],
  ["s3", () => Promise.resolve(s3Variables()), ["full"]],
  ["gcs", () => Promise.resolve(gcsVariables(gcsServer(), bucket)), ["full"]],
];

async function filesystemVariables(): Promise<Variables> {
  return {
    ARTIFACT_SERVICE_TYPE: "filesystem",
    ARTIFACT_BASE_PATH: join(await newDirectory(), "store"),
  };
}

function s3Variables(): Variables {
  return variablesOf(server(), bucket);
}

async function newDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "artifact-test-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A user and a session of its own, and a directory for files. */
async function newPlace(variables: Variables) {
  const [session, user] = [`session-${randomUUID()}`, `user-${randomUUID()}`];
  const caller = ["--user", user, "--session", session];
  const run = (args: readonly string[], input?: Iterable<Buffer>): Promise<CliResult> =>
    runCli(["artifact", ...args, ...caller], variables, input);
  return { run, session, user, caller, directory: await newDirectory() };
}

function succeeded(stdout: string, stderr = ""): CliResult {
  return { exitCode: 0, stdout, stderr };
}

const withStore = (variables: () => Promise<Variables>): void => {
  test("puts a file, and gets it by name and version", async () => {
    const { run, directory } = await newPlace(await variables());
    const [first, second] = [Buffer.alloc(6 * MiB, "first"), Buffer.from("second")];
    const path = join(directory, "data.csv");
    await writeFile(path, first);
    expect(await run(["put", path])).toEqual(succeeded("data.csv@0\n"));
    await writeFile(path, second);
    expect(await run(["put", path])).toEqual(succeeded("data.csv@1\n"));

    const [latest, old] = [join(directory, "latest"), join(directory, "old.csv")];
    expect(await run(["get", "data.csv", "--output", `${latest}/`])).toEqual(
      succeeded("", `saved ${latest}/data.csv: version 1, text/csv, 6 bytes\n`),
    );
    expect(await run(["get", "data.csv@0", "--output", old, "--json"])).toMatchObject({
      exitCode: 0,
      stdout: `{"filename":"data.csv","version":0,"mime_type":"text/csv","size_bytes":${6 * MiB},"path":"${old}"}\n`,
    });
    expect(await readFile(join(latest, "data.csv"))).toEqual(second);
    expect((await readFile(old)).equals(first)).toBe(true);
  });

  test("puts standard input, and gets to standard output", async () => {
    const { run } = await newPlace(await variables());
    const put = ["put", "-", "--name", "user:notes.md", "--mime-type", "text/x-notes", "--json"];
    expect(await run(put, [Buffer.from("a\n"), Buffer.from("b\n")])).toEqual(
      succeeded(
        '{"filename":"user:notes.md","version":0,"mime_type":"text/x-notes","size_bytes":4}\n',
      ),
    );
    expect(await run(["get", "user:notes.md", "--output", "-"])).toEqual(succeeded("a\nb\n"));
  });

  test("lists names and versions of the session and of its user", async () => {
    const environment = await variables();
    const { run, session, user } = await newPlace(environment);
    for (const [name, content] of [
      ["b.txt", "b"],
      ["b.txt", "bb"],
      ["user:a.csv", "a"],
    ] as const) {
      await run(["put", "-", "--name", name], [Buffer.from(content)]);
    }

    expect(await run(["list"])).toEqual(succeeded("b.txt@1\nuser:a.csv@0\n"));
    expect(await run(["list", "--long"])).toEqual(
      succeeded("b.txt@1\ttext/plain\t2 bytes\nuser:a.csv@0\ttext/csv\t1 bytes\n"),
    );
    expect(await run(["list", "--json"])).toEqual(
      succeeded('{"filename":"b.txt","version":1}\n{"filename":"user:a.csv","version":0}\n'),
    );
    expect(await run(["versions", "b.txt"])).toEqual(succeeded("b.txt@0\nb.txt@1\n"));
    expect(await run(["versions", "b.txt", "--long", "--json"])).toEqual(
      succeeded(
        '{"filename":"b.txt","version":0,"mime_type":"text/plain","size_bytes":1}\n' +
          '{"filename":"b.txt","version":1,"mime_type":"text/plain","size_bytes":2}\n',
      ),
    );
    const list = (...args: readonly string[]): Promise<CliResult> =>
      runCli(["artifact", "list", ...args], environment);
    expect(await list("--user", user)).toEqual(succeeded("user:a.csv@0\n"));
    expect(await list("--session", session)).toEqual(succeeded(""));
    const elsewhere = ["--user", user, "--session", session, "--namespace", "other"];
    expect(await list(...elsewhere)).toEqual(succeeded(""));
  });

  test("puts metadata beside a file as agents do, and lists them on request", async () => {
    const { run } = await newPlace(await variables());
    const get = (name: string) => run(["get", name, "--output", "-"]);
    const put = (...more: readonly string[]) =>
      run(["put", "-", "--name", "user:年.csv", ...more], [Buffer.from("a,b")]);
    const startMs = Date.now();
    expect(await put("--description", "Sales – “May”")).toEqual(succeeded("user:年.csv@0\n"));
    const { stdout } = await get("user:年.csv.metadata.json");
    const { timestamp_utc: seconds } = JSON.parse(stdout) as { timestamp_utc: number };
    expect(stdout).toBe(
      `{
  "filename": "user:\\u5e74.csv",
  "mime_type": "text/csv",
  "size_bytes": 3,
  "timestamp_utc": ${seconds},
  "description": "Sales \\u2013 \\u201cMay\\u201d",
  "schema": {
    "type": "text/csv",
    "inferred": false,
    "error": null
  }
}`,
    );
    expect(seconds * 1_000).toBeGreaterThanOrEqual(startMs);
    expect(seconds * 1_000).toBeLessThanOrEqual(Date.now());
    expect(await run(["list"])).toEqual(succeeded("user:年.csv@0\n"));
    expect(await run(["list", "--all", "--long"])).toEqual(
      succeeded(
        `user:年.csv@0\ttext/csv\t3 bytes\nuser:年.csv.metadata.json@0\tapplication/json\t${Buffer.byteLength(stdout)} bytes\n`,
      ),
    );

    expect(await put("--no-metadata")).toEqual(succeeded("user:年.csv@1\n"));
    expect(await run(["versions", "user:年.csv.metadata.json"])).toEqual(
      succeeded("user:年.csv.metadata.json@0\n"),
    );
    expect(await put()).toEqual(
      succeeded(
        "user:年.csv@2\n",
        "warning: the metadata of user:年.csv@2 are user:年.csv.metadata.json@1: agents look for its metadata in the version of the same number\n",
      ),
    );
  });

  test("puts metadata of an agent as they are", async () => {
    const { run } = await newPlace(await variables());
    await run(["put", "-", "--name", "a.csv.metadata.json"], [Buffer.from("{}")]);
    expect(await run(["list", "--all"])).toEqual(succeeded("a.csv.metadata.json@0\n"));
  });

  test("names what was not found, and in which session", async () => {
    const { run, session, directory } = await newPlace(await variables());
    await run(["put", "-", "--name", "a.txt"], []);
    for (const [args, what] of [
      [["get", "b.txt"], '"b.txt"'],
      [["get", "a.txt@7", "--output", `${directory}/new/`], '"a.txt" version 7'],
      [["versions", "b.txt"], '"b.txt"'],
    ] as const) {
      const stderr = `error: Artifact ${what} of session ${session} was not found.\n`;
      expect(await run(args)).toEqual({ exitCode: 1, stdout: "", stderr });
    }
    expect(await readdir(directory)).toEqual([]);
  });

  test("replaces a file only if it is told to", async () => {
    const { run, directory } = await newPlace(await variables());
    await run(["put", "-", "--name", "a.txt"], [Buffer.from("new")]);
    const path = join(directory, "a.txt");
    await writeFile(path, "old");
    for (const output of [path, directory]) {
      const { exitCode, stderr } = await run(["get", "a.txt", "--output", output]);
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: `error: ${path} exists; --force replaces it, --output names another file\n`,
      });
    }
    expect(await readFile(path, "utf8")).toBe("old");
    expect(await run(["get", "a.txt", "--output", path, "--force"])).toMatchObject({ exitCode: 0 });
    expect(await readFile(path, "utf8")).toBe("new");
    expect(await readdir(directory)).toEqual(["a.txt"]);
  });
};
for (const [kind, variables, tags] of stores)
  describe(`harness artifact with the store ${kind}`, { tags }, () => withStore(variables));

describe("harness artifact", () => {
  test("says why the store failed, with the words of the service", async () => {
    const rule = server().fault({
      operation: "ListObjectsV2",
      fault: { kind: "error", status: 403, code: "AccessDenied" },
      times: 1,
    });
    onTestFinished(() => rule[Symbol.dispose]());
    const { run } = await newPlace(s3Variables());
    const { exitCode, stderr } = await run(["list"]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^error: .* could not be listed: .* denies access\.\n {2}because: Acc/);
  });

  test("finds the S3 server that agents find", async () => {
    const { ARTIFACT_S3_ENDPOINT: S3_ENDPOINT_URL = "", ...rest } = s3Variables();
    const { run, user, session } = await newPlace({ ...rest, S3_ENDPOINT_URL });
    expect(await run(["put", "-", "--name", "a.txt"], [Buffer.from("a")])).toEqual(
      succeeded("a.txt@0\n"),
    );
    const { objects } = server().bucket(bucket);
    expect([...objects.keys()]).toContain(`harness/${user}/${session}/a.txt/0`);
    expect(await run(["get", "a.txt", "--output", "-"])).toEqual(succeeded("a"));
  });

  test("names the version that may exist after a save whose outcome is not known", async () => {
    const { run } = await newPlace(s3Variables());
    const put = ["put", "-", "--name", "a.txt", "--no-metadata"];
    await run(put, [Buffer.from("a")]);
    const stored = server().bucket(bucket);
    const store = stored.put.bind(stored);
    const storing = vi.spyOn(stored, "put");
    onTestFinished(() => storing.mockRestore());
    // From then on the server denies to tell what it has.
    storing.mockImplementation((key, ...rest) => {
      if (!key.endsWith("/a.txt/1")) return store(key, ...rest);
      const denied = { kind: "error", status: 403, code: "AccessDenied" } as const;
      const rule = server().fault({ operation: "HeadObject", fault: denied, times: 100 });
      onTestFinished(() => rule[Symbol.dispose]());
      store(key, ...rest);
      throw new S3Error(500, "InternalError");
    });
    const { exitCode, stderr } = await run(put, [Buffer.from("b")]);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^error: Artifact "a\.txt" of session \S+ could not be saved: /);
    expect(stderr).toMatch(/\nversion 1 of that artifact may exist all the same\n$/);
  });

  test("reads where it may not write", async () => {
    const { run } = await newPlace(s3Variables());
    await run(["put", "-", "--name", "a.txt"], [Buffer.from("a")]);
    const rule = server().fault({
      operation: "PutObject",
      fault: { kind: "error", status: 403, code: "AccessDenied" },
      times: 100,
    });
    onTestFinished(() => rule[Symbol.dispose]());
    expect(await run(["list"])).toEqual(succeeded("a.txt@0\n"));
    expect(await run(["get", "a.txt", "--output", "-"])).toEqual(succeeded("a"));
    expect(await run(["put", "-", "--name", "a.txt"], [])).toMatchObject({ exitCode: 1 });
  });

  test("leaves no file whose metadata cannot be saved", async () => {
    const variables = await filesystemVariables();
    const { run, user, session } = await newPlace(variables);
    const directory = join(variables["ARTIFACT_BASE_PATH"]!, "harness", user, session);
    await mkdir(directory, { recursive: true });
    // It stands where the directory of the metadata's versions has to be.
    await writeFile(join(directory, "a.txt.metadata.json"), "");
    const put = (...more: readonly string[]) =>
      run(["put", "-", "--name", "a.txt", ...more], [Buffer.from("a")]);
    const { exitCode, stdout, stderr } = await put();
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toMatch(/^error: "a.txt.metadata.json" is not a directory/);
    expect(await run(["list", "--all"])).toEqual(succeeded(""));
    expect(await put("--no-metadata")).toEqual(succeeded("a.txt@0\n"));
  });

  test("refuses a description that nothing would hold, and names too long for metadata", async () => {
    const { run } = await newPlace(s3Variables());
    const put = (...more: readonly string[]) => run(["put", "-", ...more], [Buffer.from("a")]);
    expect(await put("--name", "a", "--no-metadata", "--description", "x")).toMatchObject({
      exitCode: 2,
    });
    const name = "n".repeat(255);
    const { exitCode, stderr } = await put("--name", name);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("longer than 255 bytes");
    expect(await put("--name", name, "--no-metadata")).toEqual(succeeded(`${name}@0\n`));
  });

  test("refuses a pipe at once, even one that nobody writes to", async () => {
    const pipe = join(await newDirectory(), "pipe");
    await promisify(execFile)("mkfifo", [pipe]);
    const { run } = await newPlace(s3Variables());
    const { exitCode, stderr } = await run(["put", pipe]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("is not a regular file");
  });

  test("leaves nothing when a save is interrupted", async () => {
    const { session, caller, directory } = await newPlace({});
    const path = join(directory, "large.bin");
    await writeFile(path, Buffer.alloc(11 * MiB));
    const rule = server().fault({
      operation: "UploadPart",
      fault: { kind: "stall" },
      times: 100,
    });
    onTestFinished(() => rule[Symbol.dispose]());
    await using cli = new CliProcess(["artifact", "put", path, ...caller], s3Variables());
    const { uploads, objects } = server().bucket(bucket);
    await vi.waitFor(() => expect([...uploads]).toHaveLength(1), { timeout: 30_000 });
    cli.child.kill("SIGINT");
    expect(await cli.finished).toEqual({ exitCode: 130, stdout: "", stderr: "" });
    expect([...uploads]).toEqual([]);
    expect([...objects.keys()].filter((key) => key.includes(session))).toEqual([]);
  });

  test("leaves nothing of standard input when it is interrupted", { tags: "full" }, async () => {
    const TMPDIR = await newDirectory();
    const base = join(await newDirectory(), "store");
    const variables = { ARTIFACT_SERVICE_TYPE: "filesystem", ARTIFACT_BASE_PATH: base, TMPDIR };
    const args = ["artifact", "put", "-", "--name", "a.txt"];
    await using cli = new CliProcess(args, variables, { hasInput: true });
    cli.child.stdin!.write("first of many lines\n");
    // The file that keeps it has no name.
    const open = `/proc/${cli.child.pid}/fd`;
    const targets = async (): Promise<readonly string[]> =>
      Promise.all((await readdir(open)).map((fd) => readlink(join(open, fd)).catch(() => "")));
    await vi.waitFor(
      async () =>
        expect((await targets()).filter((path) => path.startsWith(TMPDIR))).toHaveLength(1),
      { timeout: 30_000 },
    );
    cli.child.kill("SIGINT");
    expect(await cli.finished).toEqual({ exitCode: 130, stdout: "", stderr: "" });
    expect(await readdir(TMPDIR)).toEqual([]);
    expect(await readdir(base)).toEqual([]);
  });

  test("leaves nothing of a file that it was writing", async () => {
    const { run, caller, directory } = await newPlace(s3Variables());
    const content = [Buffer.alloc(8 * MiB)];
    await run(["put", "-", "--name", "large.bin"], content);
    const target = join(directory, "target");
    await mkdir(target);
    const rules = [
      // What is left is asked for anew, and never comes.
      { fault: { kind: "cut answer", afterBytes: MiB }, times: 1 },
      { fault: { kind: "stall" }, times: 100 },
    ] as const;
    for (const rule of rules) {
      const added = server().fault({ operation: "GetObject", ...rule });
      onTestFinished(() => added[Symbol.dispose]());
    }
    const args = ["artifact", "get", "large.bin", "--output", target, ...caller];
    await using cli = new CliRun(args, s3Variables());
    await vi.waitFor(async () => expect(await readdir(target)).toHaveLength(1), {
      timeout: 30_000,
    });
    await cli[Symbol.asyncDispose]();
    expect(await cli.finished).toMatchObject({ exitCode: 1, stdout: "" });
    expect(await readdir(target)).toEqual([]);
  });
});
