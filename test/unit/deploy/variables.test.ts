/**
 * Every form of deployment in deploy/ sets variables that the worker reads, and grants it the time
 * to drain that they ask for.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { secretFileVariables } from "../../../worker/config/secret-files.ts";
import { factsOf } from "../../../worker/config/variable-kinds.ts";
import { variables } from "../../../worker/config/variables.ts";
import { defaultQueue, groupQueue } from "../../../worker/protocol/queue-names.ts";

const root = join(import.meta.dirname, "../../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** Read by Node and the C library: docs/operate.md, "Load". */
const ofTheProcess = ["NODE_OPTIONS", "MALLOC_ARENA_MAX"];
const known = new Set([...Object.keys(variables.shape), ...secretFileVariables, ...ofTheProcess]);
const unknown = (names: readonly string[]) => names.filter((name) => !known.has(name));

interface Values {
  readonly config: Readonly<Record<string, string>>;
  readonly secret: { readonly keys: readonly string[] };
}
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly propertyNames?: { readonly not: { readonly enum: readonly string[] } };
}

const chart = "deploy/helm/str-worker";
const values = parse(read(`${chart}/values.yaml`)) as Values;
const schema = JSON.parse(read(`${chart}/values.schema.json`)) as Schema;
const template = read(`${chart}/templates/deployment.yaml`);
const unit = read("deploy/systemd/str-worker.service");
interface Service {
  readonly environment: Readonly<Record<string, string>>;
  readonly stop_grace_period: string;
}
const compose = parse(read("deploy/compose.yaml"), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
};
const workers = Object.entries(compose.services).filter(([name]) => name.startsWith("worker-"));

describe("variables", () => {
  test("of the chart are the worker's", () => {
    const ofTemplate = [...template.matchAll(/name: ([A-Z][A-Z0-9_]+)\b/g)].map(
      ([, name]) => name!,
    );
    expect(ofTemplate).toContain("MANIFEST_PATH");
    expect(unknown([...ofTemplate, ...Object.keys(values.config)])).toEqual([]);
    expect(unknown(values.secret.keys.map((name) => `${name}_FILE`))).toEqual([]);
  });

  test("that the comments of the chart name are the worker's", () => {
    const named = [...read(`${chart}/values.yaml`).matchAll(/\b[A-Z]+(?:_[A-Z0-9]+)+\b/g)];
    const ofAmazon = ["AWS_SECRET_ACCESS_KEY"];
    const names = named.map(([name]) => name).filter((name) => !ofAmazon.includes(name));
    expect(names.length).toBeGreaterThan(8);
    expect(unknown(names)).toEqual([]);
  });

  test("of Kustomize are the worker's", () => {
    const files = globSync("deploy/kustomize/**/*.yaml", { cwd: root });
    const names = files.flatMap((file) =>
      [...read(file).matchAll(/name: ([A-Z][A-Z0-9_]+)\b/g)].map(([, name]) => name!),
    );
    expect(names).toEqual(expect.arrayContaining(["SAM_NAMESPACE", "ARTIFACT_S3_BUCKET"]));
    expect(unknown(names)).toEqual([]);
  });

  test("of the service of systemd are the worker's", () => {
    const names = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = ""]) =>
      [...line.matchAll(/(?:^| )([A-Z][A-Z0-9_]+)=/g)].map(([, name]) => name!),
    );
    expect(names).toContain("SANDBOX_WORK_DIR");
    expect(unknown(names)).toEqual([]);
  });

  test("of Compose are the worker's", () => {
    expect(workers.map(([name]) => name)).toEqual(["worker-1", "worker-2"]);
    for (const [, { environment }] of workers)
      expect(unknown(Object.keys(environment))).toEqual([]);
  });

  test("with secrets are refused in the values of the chart, which are no secret", () => {
    const refused = schema.properties!["config"]!.propertyNames!.not.enum;
    // Addresses are no secret to those who may read a Deployment.
    const isAddress = (name: string) => /_(?:HOST|ENDPOINT)$/.test(name);
    const secrets = Object.entries(variables.shape).flatMap(([name, variable]) =>
      factsOf(variable).isSecret && !isAddress(name) ? [name] : [],
    );
    expect([...refused].sort()).toEqual(["MANIFEST_PATH", "SAM_WORKER_ID", ...secrets].sort());
  });
});

test("the chart has a schema of every value, and no other", () => {
  const pathsOf = (node: unknown, at: Schema, path: string): readonly string[] =>
    at.properties === undefined || at.propertyNames !== undefined
      ? [path]
      : Object.entries(node as object).flatMap(([key, value]) =>
          pathsOf(value, at.properties![key] ?? {}, `${path}.${key}`),
        );
  const schemaPaths = (at: Schema, path: string): readonly string[] =>
    at.properties === undefined || at.propertyNames !== undefined
      ? [path]
      : Object.entries(at.properties).flatMap(([key, value]) =>
          schemaPaths(value, `${path}.${key}`),
        );
  const paths = schemaPaths(schema, "").filter((path) => path !== ".global");
  expect([...pathsOf(values, schema, "")].sort()).toEqual([...paths].sort());
});

test("Prometheus scrapes the workers of Compose by their names and port", () => {
  interface Scraping {
    readonly scrape_configs: readonly [
      { readonly static_configs: readonly [{ readonly targets: readonly string[] }] },
    ];
  }
  const { scrape_configs: jobs } = parse(read("deploy/prometheus/prometheus.yaml")) as Scraping;
  expect(jobs[0].static_configs[0].targets).toEqual(
    workers.map(([name, { environment }]) => `${name}:${environment["HEALTH_PORT"]}`),
  );
});

test("the chart has the version of the package", () => {
  const { version } = JSON.parse(read("package.json")) as { readonly version: string };
  expect(parse(read(`${chart}/Chart.yaml`))).toMatchObject({ version, appVersion: version });
});

test("the scalers of Kustomize watch the queue of the workers", () => {
  interface Deployed {
    readonly kind: string;
    readonly spec: {
      readonly triggers: readonly { readonly metadata: { readonly queueName: string } }[];
    };
  }
  for (const broker of ["rabbitmq", "solace"]) {
    const path = `deploy/kustomize/components/keda-${broker}/scaled-object.yaml`;
    const [scaled] = parseAllDocuments(read(path)).map((document) => document.toJS() as Deployed);
    const { SAM_NAMESPACE: namespace = "", WORKER_GROUP: group = "" } = values.config;
    expect(scaled!.spec.triggers[0]!.metadata.queueName).toBe(
      groupQueue(namespace, group, defaultQueue),
    );
  }
});

describe("more time to end than a worker takes", () => {
  const answersSeconds = 10;

  test("is granted by systemd", () => {
    const number = (pattern: RegExp) => Number(pattern.exec(unit)![1]);
    expect(number(/^TimeoutStopSec=(\d+)$/m)).toBeGreaterThan(
      number(/DRAIN_TIMEOUT_SECONDS=(\d+)/) + answersSeconds,
    );
  });

  test("is granted by Compose", () => {
    for (const [, { environment, stop_grace_period: grace }] of workers) {
      expect(Number.parseInt(grace, 10)).toBeGreaterThan(
        Number(environment["DRAIN_TIMEOUT_SECONDS"]) + answersSeconds,
      );
    }
  });
});
