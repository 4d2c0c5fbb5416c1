/**
 * The order of test files: the longest first, so that no core waits for one that began last, and
 * one project after the other, since a process that has loaded the sources ends with its project.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Tests of the first wait most of their time: at the end, many short files keep all cores busy. */
const projects = ["full", "package", "security", "conformance", "integration"];

/** The longest files, by the end of their path. A fresh clone has no times of its own. */
const longest = [
  "full/attacks.test.ts",
  "full/attacks-by-users.test.ts",
  "full/chaos-rabbitmq.test.ts",
  "full/chaos-solace.test.ts",
  "full/doctor/weaknesses.test.ts",
  "full/soak.test.ts",
  "full/doctor/attack-starts.test.ts",
  "full/foreign-agent.test.ts",
  "full/fresh-clone.test.ts",
  "package/launch.test.ts",
  "package/setup.test.ts",
  "security/template.test.ts",
  "security/neighbours.test.ts",
  "integration/harness/tool/tool-run.test.ts",
  "integration/sandbox/accounting.test.ts",
  "conformance/broker.amqp.test.ts",
  "integration/artifacts/gcs.test.ts",
  "conformance/sandbox-backend.template.test.ts",
  "integration/artifacts/s3-without-conditions.test.ts",
  "integration/sandbox/cgroup/cgroup.test.ts",
  "integration/worker/node.test.ts",
  "conformance/artifacts/object-store.gcs.test.ts",
  "integration/harness/invoke.test.ts",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted(
      (a, b) => groupOf(a) - groupOf(b) || placeOf(a) - placeOf(b) || rank(a) - rank(b),
    );
  }
}

function groupOf({ project }: TestSpecification): number {
  return project.config.sequence.groupOrder;
}

function placeOf({ project }: TestSpecification): number {
  return projects.indexOf(project.name);
}

function rank({ moduleId }: TestSpecification): number {
  const place = longest.findIndex((end) => moduleId.endsWith(end));
  return place < 0 ? longest.length : place;
}
