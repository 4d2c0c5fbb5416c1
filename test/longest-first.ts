/**
 * The order of test files: the longest first, so that no core waits for one that began last, and
 * one project after the other, since a process that has loaded the sources ends with its project.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Tests of the first wait most of their time: at the end, many short files keep all cores busy. */
const projects = ["full", "package", "system", "unit", "architecture"];

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
  "conformance/broker.amqp.test.ts",
  "integration/gateway/programs.test.ts",
  "integration/sandbox/accounting.test.ts",
  "integration/harness/tool/tool-run.test.ts",
  "conformance/sandbox-backend.template.test.ts",
  "conformance/artifacts/object-store.gcs.test.ts",
  "conformance/artifacts/object-store.s3.test.ts",
  "integration/worker/life/redelivery.test.ts",
  "integration/amqp/worker.test.ts",
  "integration/worker/node.test.ts",
  "integration/sandbox/work/work-dirs.test.ts",
  "integration/sandbox/gateway.test.ts",
  "integration/sandbox/template.test.ts",
  "security/template.test.ts",
  "integration/doctor/attacks.test.ts",
  "integration/sandbox/cgroup/cgroup.test.ts",
  "integration/sandbox/pool.test.ts",
  "unit/sandbox/accounting/resource-monitor.test.ts",
  "unit/manifest/toolsets/toolsets.test.ts",
  "unit/invocation/arguments/schema-checker.test.ts",
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
