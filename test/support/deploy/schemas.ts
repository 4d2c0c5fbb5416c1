/**
 * Validation of resources by kubeconform, with the schemas of Kubernetes from PyPI and those of
 * KEDA from its Go module: schemas that kubeconform would download are in neither registry.
 */
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "vitest";
import { parse } from "yaml";
import { goModuleFiles, goProgram } from "../go-program.ts";
import { pypiPackages } from "../pypi-packages.ts";

const ofKubernetes = "kubernetes-validate==1.37.0";
const keda = "v2.21.0";
const kinds = [
  ...["configmap-v1", "deployment-apps-v1", "networkpolicy-networking-v1"],
  ...["persistentvolumeclaim-v1", "poddisruptionbudget-policy-v1", "serviceaccount-v1"],
];
const kedaKinds = ["scaledobjects", "triggerauthentications"];

type Schema = Record<string, unknown>;

interface Definition {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

/** A schema that refuses members it does not list, as an API server does of a typed client. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict);
  if (schema === null || typeof schema !== "object") return schema;
  const own = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, strict(value)]),
  );
  const isClosed =
    "properties" in own &&
    !("additionalProperties" in own) &&
    own["x-kubernetes-preserve-unknown-fields"] !== true;
  return isClosed ? { ...own, additionalProperties: false } : own;
}

/** What kubeconform finds. */
export interface Verdict {
  readonly valid: number;
  /** A line for each resource that is invalid, or has no schema. */
  readonly problems: readonly string[];
}

interface Report {
  readonly resources: readonly {
    readonly status: string;
    readonly kind: string;
    readonly msg: string;
  }[];
}

/** A validator for a version of Kubernetes, such as 1.33.0. Keeps schemas in a directory. */
export async function kubeconform(
  context: TestContext,
  version: string,
  directory: string,
): Promise<(text: string) => Promise<Verdict>> {
  const program = await goProgram(
    context,
    "github.com/yannh/kubeconform/cmd/kubeconform",
    "v0.8.0",
  );
  const packages = await pypiPackages(context, [ofKubernetes], { hasDependencies: false });
  const schemas = join(
    packages,
    `kubernetes_validate/kubernetes-json-schema/v${version}-local-strict`,
  );
  const crds = await goModuleFiles(
    context,
    "github.com/kedacore/keda/v2",
    keda,
    "config/crd/bases",
  );
  await mkdir(directory, { recursive: true });
  const { $defs } = JSON.parse(
    await readFile(join(schemas, "_definitions.json"), "utf8"),
  ) as Schema;
  for (const name of kinds) {
    const text = await readFile(join(schemas, `${name}.json`), "utf8");
    // Definitions are at an address that only the package's own program serves.
    const own = JSON.parse(text.replaceAll("/api/_definitions.json#", "#")) as Schema;
    await writeFile(join(directory, `${name}.json`), JSON.stringify({ ...own, $defs }));
  }
  for (const kind of kedaKinds) {
    const text = await readFile(join(crds, `keda.sh_${kind}.yaml`), "utf8");
    const { spec } = parse(text) as Definition;
    for (const { name, schema } of spec.versions) {
      const file = `${spec.names.kind.toLowerCase()}_${name}.json`;
      const closed = strict(schema.openAPIV3Schema) as Schema & { properties: Schema };
      const properties = { ...closed.properties, metadata: { type: "object" } };
      await writeFile(join(directory, file), JSON.stringify({ ...closed, properties }));
    }
  }
  const locations = [
    join(directory, "{{.ResourceKind}}{{.KindSuffix}}.json"),
    join(directory, "{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"),
  ];
  const argv = ["-strict", "-verbose", "-output", "json"];
  for (const location of locations) argv.push("-schema-location", location);
  return async (text) => verdictOf(await standardOutput(program, argv, text));
}

function verdictOf(output: string): Verdict {
  const { resources } = JSON.parse(output) as Report;
  const isValid = ({ status }: { readonly status: string }) => status === "statusValid";
  const problems = resources.filter((resource) => !isValid(resource));
  return {
    valid: resources.filter(isValid).length,
    problems: problems.map(({ kind, status, msg }) => `${kind}: ${status} ${msg}`),
  };
}

/** Of a program that exits with 1 when it finds something. */
function standardOutput(program: string, argv: readonly string[], input: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, argv, { maxBuffer: 2 ** 24 }, (error, stdout) => {
      if (error !== null && stdout === "") reject(new Error(`${program} failed`, { cause: error }));
      else resolve(stdout);
    });
    child.stdin!.end(input);
  });
}
