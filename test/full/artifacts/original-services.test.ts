/**
 * The stores beside the artifact services of the original, from PyPI: what either saves, the other
 * lists, loads and types.
 *
 * @module-tag full
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import { gcsVariables } from "../../../harness/fakes/gcs/variables.ts";
import { s3Variables } from "../../../harness/fakes/s3/variables.ts";
import { createFilesystemStore } from "../../../worker/artifacts/filesystem/store.ts";
import type { ArtifactScope, ArtifactStore } from "../../../worker/artifacts/store.ts";
import { runCli } from "../../integration/harness/cli-process.ts";
import { pypiPackages } from "../../support/pypi-packages.ts";
import { gcsStore, useFakeGcs } from "../../support/gcs.ts";
import { s3Store, useFakeS3 } from "../../support/s3.ts";
import { programEnvironment } from "../../support/workers/program-environment.ts";
import { never, sourceOf, temporaryDirectory } from "../../unit/artifacts/fixtures.ts";

const program = fileURLToPath(
  new URL("../../fixtures/agents/artifact_services.py", import.meta.url),
);

/** The services' own package, whose other parts need much more, as do those of their contract. */
const services = "solace-agent-mesh==1.28.8";
/** What the services import, in the versions that their package asks for. */
const libraries = ["boto3==1.40.37", "google-cloud-storage==3.9.0"];

/** The package of the services' contract, and what it imports: an old version and a new one. */
const contracts = [
  ["google-adk==1.18.0", "google-genai==1.49.0"],
  ["google-adk==2.13.0", "google-genai==2.34.0"],
] as const;

/** A service by its kind, on a version of its contract. */
interface Peer {
  readonly kind: string;
  readonly contract: string;
  readonly library: string;
}

const bucket = "artifacts";
const server = useFakeS3({ buckets: [bucket] });
const gcsServer = useFakeGcs({ buckets: [bucket] });

/** A store, and what its peer gets: a place, and variables. */
interface Meeting {
  readonly store: ArtifactStore;
  readonly place: string;
  readonly variables: Readonly<Record<string, string>>;
  /** The service saves names as they are given, where others normalise them. */
  readonly keepsSpelling?: boolean;
  /** Variables of worker and harness for the same store. */
  readonly environment: Readonly<Record<string, string>>;
}

/** By the service's kind; another one is another row. */
const meetings: Readonly<Record<string, () => Promise<Meeting>>> = {
  filesystem: async () => {
    const place = await temporaryDirectory();
    const environment = { ARTIFACT_SERVICE_TYPE: "filesystem", ARTIFACT_BASE_PATH: place };
    return { store: createFilesystemStore({ basePath: place }), place, variables: {}, environment };
  },
  s3: () => {
    const { endpoint, accessKeyId, secretAccessKey, region } = server();
    const variables = {
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_DEFAULT_REGION: region,
    };
    return Promise.resolve({
      store: s3Store(endpoint, bucket),
      place: `${endpoint}/${bucket}`,
      variables,
      environment: s3Variables(server(), bucket),
    });
  },
  gcs: () => {
    const { endpoint, credentialsFile } = gcsServer();
    return Promise.resolve({
      store: gcsStore(endpoint, bucket),
      place: `${endpoint}/${bucket}`,
      variables: { GOOGLE_APPLICATION_CREDENTIALS: credentialsFile },
      environment: gcsVariables(gcsServer(), bucket),
      keepsSpelling: true,
    });
  },
};

/** A service of the original. */
class Agent {
  readonly #requests: Writable;
  readonly #answers: AsyncIterator<string>;
  readonly #scope: ArtifactScope;

  private constructor(requests: Writable, answers: Readable, scope: ArtifactScope) {
    this.#requests = requests;
    this.#answers = createInterface(answers)[Symbol.asyncIterator]();
    this.#scope = scope;
  }

  static async start(
    context: TestContext,
    { kind, contract, library }: Peer,
    { place, variables }: Meeting,
    scope: ArtifactScope,
  ): Promise<Agent> {
    const paths = [
      await pypiPackages(context, [...libraries, library]),
      await pypiPackages(context, [services, contract], { hasDependencies: false }),
    ];
    const child = spawn("/usr/bin/python3", [program, kind, place], {
      env: { ...programEnvironment(), ...variables, PYTHONPATH: paths.join(":") },
      stdio: ["pipe", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    return new Agent(child.stdin, child.stdout, scope);
  }

  save(filename: string, content: string, mime_type: string): Promise<unknown> {
    return this.#ask("save_artifact", { filename, content, mime_type });
  }

  /** As agents save what users upload and tools create. Resolves with the two versions. */
  saveWithMetadata(filename: string, values: object): Promise<unknown> {
    return this.#ask("save_with_metadata", { filename, ...values });
  }

  /** As agents read the metadata of a version. */
  loadMetadata(filename: string, version: number | "latest"): Promise<unknown> {
    return this.#ask("load_metadata", { filename, version });
  }

  load(filename: string, version?: number): Promise<unknown> {
    return this.#ask("load_artifact", { filename, ...(version !== undefined && { version }) });
  }

  async names(sessionId = this.#scope.sessionId): Promise<readonly string[]> {
    const names = await this.#ask("list_artifact_keys", { session_id: sessionId });
    return (names as string[]).toSorted();
  }

  versions(filename: string): Promise<unknown> {
    // The filesystem service finds no other spelling here, unlike where it saves and loads.
    return this.#ask("list_versions", { filename: filename.normalize("NFKC") });
  }

  async #ask(method: string, values: object): Promise<unknown> {
    const { root: app_name, userId: user_id, sessionId: session_id } = this.#scope;
    const request = { do: method, app_name, user_id, session_id, ...values };
    this.#requests.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    if (done) throw new Error("the service has ended");
    return JSON.parse(value);
  }
}

function newScope(root: string = `ns-${randomUUID()}`): ArtifactScope {
  return { root, userId: "ann@example.com", sessionId: "web-session-1" };
}

async function meet(context: TestContext, peer: Peer, scope: ArtifactScope) {
  const meeting = await meetings[peer.kind]!();
  onTestFinished(() => meeting.store[Symbol.asyncDispose]());
  const { keepsSpelling = false } = meeting;
  const agent = await Agent.start(context, peer, meeting, scope);
  return { ...meeting, keepsSpelling, agent };
}

async function load(
  store: ArtifactStore,
  scope: ArtifactScope,
  filename: string,
  version?: number,
) {
  const { body, metadata } = await store.open(scope, { filename, version }, never);
  return { content: (await body.toArray()).join(""), mime_type: metadata.mimeType };
}

/** Names and types that agents and tools use, and such as a layout could get wrong. */
const artifacts = [
  ["report.csv", "text/csv"],
  ["report.csv.metadata.json", "application/json"],
  ["年.csv", "text/csv; charset=utf-8"],
  ["a b+c&d=e%2f?#.txt", "text/plain"],
  ["Bildschirmfoto 10.00\u202fUhr.png", "image/png"],
  ["user:prefs.json", "application/json"],
  ["user:年.json", "application/json"],
] as const;

const names = artifacts.map(([filename]) => filename.normalize("NFKC")).toSorted();

const timeoutMs = 400_000;

const peers = contracts.flatMap(([contract, library]) =>
  Object.keys(meetings).map((kind): Peer => ({ kind, contract, library })),
);

describe.each(peers)("the original's service of the kind $kind on $contract", (peer) => {
  test("saves what the store lists, loads and types", { timeout: timeoutMs }, async (context) => {
    const scope = newScope();
    const { store, agent, keepsSpelling } = await meet(context, peer, scope);
    for (const [filename, mimeType] of artifacts) {
      expect(await agent.save(filename, `first ${filename}`, mimeType)).toBe(0);
      expect(await agent.save(filename, `second ${filename}`, mimeType)).toBe(1);
    }

    const listed = keepsSpelling ? names.filter((name) => !name.includes("Uhr")) : names;
    expect(await store.names(scope, never)).toEqual(listed);
    for (const [filename, mime_type] of artifacts) {
      expect(await store.versions(scope, filename, never)).toEqual([0, 1]);
      const second = { content: `second ${filename}`, mime_type };
      expect(await load(store, scope, filename)).toEqual(second);
      expect(await load(store, scope, filename, 0)).toEqual({
        content: `first ${filename}`,
        mime_type,
      });
    }
  });

  test("lists, loads and types what the store saves", { timeout: timeoutMs }, async (context) => {
    const scope = newScope();
    const { store, agent, keepsSpelling } = await meet(context, peer, scope);
    for (const [filename, mimeType] of artifacts) {
      for (const content of [`first ${filename}`, `second ${filename}`])
        await store.save(scope, filename, sourceOf(content), { mimeType }, never);
    }

    expect(await agent.names()).toEqual(names);
    expect(await agent.names("another-session")).toEqual(["user:prefs.json", "user:年.json"]);
    for (const [filename, mime_type] of artifacts) {
      const name = keepsSpelling ? filename.normalize("NFKC") : filename;
      expect(await agent.versions(name)).toEqual([0, 1]);
      expect(await agent.load(name)).toEqual({ content: `second ${filename}`, mime_type });
      expect(await agent.load(name, 0)).toEqual({ content: `first ${filename}`, mime_type });
    }
  });

  test(
    "reads the metadata of harness artifact put, which are those of an agent byte by byte",
    { timeout: timeoutMs },
    async (context) => {
      const scope = newScope();
      const { agent, store, environment } = await meet(context, peer, scope);
      const [filename, mime_type, content] = ["user:年.txt", "text/plain", "some text"];
      const description = "Notes – “May” \u007f😀";
      const caller = ["--namespace", scope.root, "--user", scope.userId];
      const session = ["--session", scope.sessionId];
      const put = ["put", "-", "--name", filename, "--description", description];
      expect(
        await runCli(["artifact", ...put, ...caller, ...session], environment, [
          Buffer.from(content),
        ]),
      ).toMatchObject({ exitCode: 0, stdout: `${filename}@0\n`, stderr: "" });

      const metadata = (await agent.loadMetadata(filename, "latest")) as { timestamp_utc: number };
      const { timestamp_utc: timestamp } = metadata;
      expect(metadata).toMatchObject({
        filename,
        mime_type,
        size_bytes: 9,
        description,
        schema: { type: mime_type },
      });
      const values = { content, mime_type, timestamp, description };
      expect(await agent.saveWithMetadata(filename, values)).toEqual([1, 1]);
      const companion = `${filename}.metadata.json`;
      expect(await load(store, scope, companion, 0)).toEqual(
        await load(store, scope, companion, 1),
      );
    },
  );

  test("and the store take turns at one name", { timeout: timeoutMs }, async (context) => {
    const scope = newScope();
    const { store, agent } = await meet(context, peer, scope);
    const [filename, type] = ["log.txt", "text/plain"];
    expect(await agent.save(filename, "agent", type)).toBe(0);
    const saved = await store.save(scope, filename, sourceOf("ours"), { mimeType: type }, never);
    expect(saved.version).toBe(1);
    expect(await agent.save(filename, "agent again", type)).toBe(2);
    expect(await store.deleteVersion(scope, filename, saved, never)).toBe(true);
    expect(await agent.versions(filename)).toEqual([0, 2]);
    expect(await load(store, scope, filename)).toMatchObject({ content: "agent again" });
  });

  test(
    "and the store meet in namespaces with slashes at their ends",
    { timeout: timeoutMs },
    async (context) => {
      const scope = newScope(`ns-${randomUUID()}/`);
      const { store, agent } = await meet(context, peer, scope);
      expect(await agent.save("theirs.txt", "theirs", "text/plain")).toBe(0);
      await store.save(scope, "ours.txt", sourceOf("ours"), { mimeType: "text/plain" }, never);
      expect(await store.names(scope, never)).toEqual(["ours.txt", "theirs.txt"]);
      expect(await agent.names()).toEqual(["ours.txt", "theirs.txt"]);
    },
  );

  test(
    "saves what the store reads below a namespace with a slash inside",
    { timeout: timeoutMs },
    async (context) => {
      const scope = newScope(`ns-${randomUUID()}/dev`);
      const { store, agent } = await meet(context, peer, scope);
      expect(await agent.save("report.csv", "theirs", "text/csv")).toBe(0);
      expect(await store.names(scope, never)).toEqual(["report.csv"]);
      expect(await load(store, scope, "report.csv")).toEqual({
        content: "theirs",
        mime_type: "text/csv",
      });
      await store.save(scope, "ours.csv", sourceOf("ours"), { mimeType: "text/csv" }, never);
      expect(await agent.load("ours.csv", 0)).toEqual({ content: "ours", mime_type: "text/csv" });
    },
  );
});
