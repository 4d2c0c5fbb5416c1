/**
 * The artifact stores that the demo can use.
 */
import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { marksLevel } from "../../worker/artifacts/scope.ts";
import type { SharedArtifactsOptions } from "../artifacts.ts";
import type { DemoStoreKind } from "../options/defaults.ts";

/** A store. The demo disposes it after worker and harness. */
export interface DemoStore extends AsyncDisposable {
  /** What it is, for people. */
  readonly title: string;
  /** The worker's variables. */
  readonly variables: Readonly<Record<string, string>>;
  /** For this process, whose environment has none. */
  readonly credentials?: SharedArtifactsOptions["credentials"];
  /** Keys of objects, or paths of files, that artifacts are in. */
  places(): Promise<readonly string[]>;
}

const bucket = "demo-artifacts";

const stores: Readonly<Record<DemoStoreKind, (home: string) => Promise<DemoStore>>> = {
  filesystem: (home) => {
    const base = join(home, "artifacts");
    return Promise.resolve({
      title: `Artifacts are files below ${base}.`,
      variables: { ARTIFACT_SERVICE_TYPE: "filesystem", ARTIFACT_BASE_PATH: base },
      places: async () => {
        const entries = await readdir(base, { recursive: true, withFileTypes: true });
        const files = entries.filter((entry) => entry.isFile());
        return withoutMarks(files.map((file) => relative(base, join(file.parentPath, file.name))));
      },
      // With the demo's directory.
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  },
  s3: async () => {
    const { startFakeS3 } = await import("../fakes/s3/server.ts");
    const { s3Variables } = await import("../fakes/s3/variables.ts");
    const server = await startFakeS3({ buckets: [bucket] });
    return {
      title: `Artifacts are objects of an S3 server on ${server.endpoint}.`,
      variables: s3Variables(server, bucket),
      credentials: server,
      places: () => Promise.resolve(withoutMarks([...server.bucket(bucket).objects.keys()])),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  gcs: async () => {
    const { startFakeGcs } = await import("../fakes/gcs/server.ts");
    const { gcsVariables } = await import("../fakes/gcs/variables.ts");
    // The SDK looks for credentials in the environment, and this process has none there.
    const server = await startFakeGcs({ buckets: [bucket], isOpen: true });
    const { GOOGLE_APPLICATION_CREDENTIALS: _none, ...variables } = gcsVariables(server, bucket);
    return {
      title: `Artifacts are objects of a Cloud Storage server on ${server.endpoint}.`,
      variables,
      places: () => Promise.resolve(withoutMarks([...server.bucket(bucket).objects.keys()])),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};

/** @param home the demo's directory */
export function openDemoStore(kind: DemoStoreKind, home: string): Promise<DemoStore> {
  return stores[kind](home);
}

function withoutMarks(places: readonly string[]): readonly string[] {
  return places.filter((place) => !place.startsWith(`${marksLevel}/`)).toSorted();
}
