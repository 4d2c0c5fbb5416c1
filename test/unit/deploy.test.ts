/**
 * Keeps deploy/ true: what it repeats of the worker and of the image is compared with them.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { readConfig } from "../../worker/config/config.ts";
import { parse as parseManifest } from "./manifest/fixtures.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly template?: { readonly metadata: Resource["metadata"]; readonly spec: Pod };
  };
}

interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [Container];
  readonly volumes: readonly ({ readonly name: string } & Source)[];
}

interface Source {
  readonly configMap?: { readonly name: string };
  readonly persistentVolumeClaim?: { readonly claimName: string };
}

interface Container {
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

const base = "deploy/kustomize/base";
const kustomization = parse(read(`${base}/kustomization.yaml`)) as {
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly name: string; readonly files: string[] }[];
};
const resources: readonly Resource[] = [
  ...kustomization.resources.flatMap((file) =>
    parseAllDocuments(read(`${base}/${file}`)).map((document) => document.toJS() as Resource),
  ),
  ...kustomization.configMapGenerator.map(({ name, files }) => ({
    kind: "ConfigMap",
    metadata: { name },
    data: Object.fromEntries(files.map((file) => [file, read(`${base}/${file}`)])),
  })),
];
const named = (kind: string, name: string): Resource =>
  resources.find((resource) => resource.kind === kind && resource.metadata.name === name)!;
const pod = named("Deployment", "str-worker").spec!.template!.spec;
const [container] = pod.containers;

test("the image takes nothing from the package that Docker is told to ignore", () => {
  const copied = [...read("Dockerfile").matchAll(/^COPY --from=build (.*) \S+$/gm)].flatMap(
    ([, sources = ""]) => sources.split(" ").map((source) => source.replace("/build/", "")),
  );
  const made = ["node_modules"];
  const ignored = read(".dockerignore")
    .split("\n")
    .map((line) => line.replace("**/", ""));
  expect(copied).toContain("dist");
  expect(copied.filter((source) => !made.includes(source) && ignored.includes(source))).toEqual([]);
});

describe("the deployment for Kubernetes", () => {
  const secrets = ["AMQP_URL"];
  const environment = {
    ...Object.fromEntries(secrets.map((name) => [name, "amqps://worker:secret@rabbitmq/agents"])),
    ...Object.fromEntries(container.env.map(({ name, value }) => [name, value ?? "a-pod"])),
  };
  for (const name of secrets) delete environment[`${name}_FILE`];
  const config = readConfig(environment);

  test("configures a worker", () => {
    expect(config).toMatchObject({ namespace: "production", broker: { kind: "amqp" } });
  });

  test("mounts its secrets where no sandbox gets credentials from", () => {
    const { mountPath } = container.volumeMounts.find(({ name }) => name === "secrets")!;
    const files = container.env.filter(({ name }) => name.endsWith("_FILE"));
    expect(files.map(({ value }) => value)).toEqual(secrets.map((name) => `${mountPath}/${name}`));
    expect(mountPath).not.toMatch(/^\/run\/secrets/);
  });

  test("has volumes where the image says that the worker writes", () => {
    const volumes = JSON.parse(/^VOLUME (.*)$/m.exec(read("Dockerfile"))![1]!) as string[];
    const mounted = container.volumeMounts.map(({ mountPath }) => mountPath);
    expect(mounted).toEqual(expect.arrayContaining(volumes));
  });

  test("mounts what it declares", () => {
    const volumes = new Map(pod.volumes.map((volume) => [volume.name, volume]));
    for (const { name } of container.volumeMounts) {
      const { configMap, persistentVolumeClaim } = volumes.get(name)!;
      if (configMap) expect(named("ConfigMap", configMap.name)).toBeDefined();
      if (persistentVolumeClaim) {
        expect(named("PersistentVolumeClaim", persistentVolumeClaim.claimName)).toBeDefined();
      }
    }
    expect(volumes.size).toBe(container.volumeMounts.length);
  });

  test("has a manifest that the worker takes, with the modules that it names", () => {
    const [[file, text]] = Object.entries(named("ConfigMap", "str-worker-manifest").data!) as [
      [string, string],
    ];
    const mount = container.volumeMounts.find(({ name }) => name === "manifest")!;
    expect(config.manifestPath).toBe(`${mount.mountPath}/${file}`);
    const modules = Object.keys(named("ConfigMap", "str-worker-python-tools").data!);
    const tools = [...parseManifest(text).manifest.tools.values()];
    expect(tools.map(({ module }) => `${module}.py`)).toEqual(modules);
  });

  test("has the label and the port by which docs/kubernetes.md finds workers for Prometheus", () => {
    const [, block = ""] = /```yaml\n(scrape_configs:.*?)```/s.exec(read("docs/kubernetes.md"))!;
    interface Job {
      readonly job_name: string;
      readonly relabel_configs: readonly [{ readonly regex: string }];
    }
    const { scrape_configs: jobs } = parse(block) as { readonly scrape_configs: readonly Job[] };
    const [port] = container.ports;
    const { labels } = named("Deployment", "str-worker").spec!.template!.metadata;
    expect(jobs.map(({ job_name: job }) => job)).toEqual(["str-worker"]);
    expect(jobs[0]!.relabel_configs[0].regex).toBe(`${labels!["app"]};${port!.name}`);
    expect(port!.containerPort).toBe(config.healthPort);
  });

  test("grants more time to end than a worker takes", () => {
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(config.drainTimeoutSeconds + 10);
  });
});
