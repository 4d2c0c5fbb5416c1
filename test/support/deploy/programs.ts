/**
 * The tools of Kubernetes that render and validate deploy/, built from Go's registry.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { parseAllDocuments } from "yaml";
import { goProgram } from "../go-program.ts";

const run = promisify(execFile);
const deploy = join(import.meta.dirname, "../../../deploy");
const maxBytes = 2 ** 24;

/** The directory of the chart. */
export const chart: string = join(deploy, "helm/str-worker");
/** The directory of Kustomize. */
export const kustomizations: string = join(deploy, "kustomize");

type Skips = Pick<TestContext, "skip">;

/** Rendered text, and its resources. */
export interface Rendered {
  readonly text: string;
  readonly resources: readonly Resource[];
}

/** What tests read of a resource. */
export interface Resource {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: unknown;
  readonly data?: Readonly<Record<string, string>>;
}

/** Runs Helm; the test is skipped where it cannot be built. Rejects with its errors. */
export async function helm(context: Skips, ...argv: readonly string[]): Promise<string> {
  const program = await goProgram(context, "helm.sh/helm/v3/cmd/helm", "v3.22.0");
  return (await run(program, argv, { maxBuffer: maxBytes })).stdout;
}

/** The chart, rendered with values as `--set` takes them, and files as `--set-file` does. */
export async function rendered(
  context: Skips,
  values: readonly string[],
  files: readonly string[] = [],
): Promise<Rendered> {
  const options = [
    // Helm that Go installs knows no version of Kubernetes.
    ...["--kube-version", "1.33.0"],
    // Variables are texts, also those that look like numbers.
    ...values.flatMap((value) => [value.startsWith("config.") ? "--set-string" : "--set", value]),
    ...files.flatMap((value) => ["--set-file", value]),
  ];
  return read(await helm(context, "template", "str-worker", chart, ...options));
}

/** A directory as Kustomize builds it; the test is skipped where it cannot be built itself. */
export async function kustomized(context: Skips, directory: string): Promise<Rendered> {
  const program = await goProgram(context, "sigs.k8s.io/kustomize/kustomize/v5", "v5.8.2");
  return read((await run(program, ["build", directory], { maxBuffer: maxBytes })).stdout);
}

function read(text: string): Rendered {
  const documents = parseAllDocuments(text).map((document) => document.toJS() as Resource | null);
  return { text, resources: documents.filter((document) => document !== null) };
}
