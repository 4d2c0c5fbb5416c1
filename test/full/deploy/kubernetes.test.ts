/**
 * The chart and the kustomizations of deploy/ by the real tools: linted, rendered, validated
 * against the schemas of Kubernetes and KEDA, and compared.
 *
 * @module-tag full
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { defaultQueue, groupQueue } from "../../../worker/protocol/queue-names.ts";
import {
  type Rendered,
  type Resource,
  chart,
  helm,
  kustomizations,
  kustomized,
  rendered,
} from "../../support/deploy/programs.ts";
import { kubeconform } from "../../support/deploy/schemas.ts";
import { slowPlace } from "../../support/sandboxes/quick-place.ts";

const options = ["user-namespaces", "no-capabilities", "capabilities", "development-privileged"];
const versions = ["1.27.0", "1.33.0", "1.37.0"];
const solace = ["keda.enabled=true", "keda.broker=solace"];
const s3 = ["config.ARTIFACT_SERVICE_TYPE=s3", "config.ARTIFACT_S3_BUCKET=my-artifacts"];
const gcs = ["config.ARTIFACT_SERVICE_TYPE=gcs", "config.ARTIFACT_GCS_BUCKET=my-artifacts"];
const role = "arn:aws:iam::111122223333:role/str-worker";
const account = "str-worker@my-project.iam.gserviceaccount.com";

const variants: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(options.map((option) => [option, [`option=${option}`]])),
  rabbitmq: ["keda.enabled=true"],
  solace,
  s3,
  gcs,
  "everything else": [
    ...["runtimeClassName=gvisor", "credentialsSecret=keys", "priorityClassName=high"],
    ...["podAnnotations.a=b", "nodeSelector.a=b", "imagePullSecrets[0].name=mine"],
    ...["tolerations[0].key=a", "affinity.nodeAffinity=null", "tools.node.a\\.mjs=export {}"],
    ...["artifacts.storageClass=fast", "env[0].name=A,env[0].value=b"],
    ...["extraVolumes[0].name=x,extraVolumes[0].emptyDir.medium=Memory"],
    ...["extraVolumeMounts[0].name=x,extraVolumeMounts[0].mountPath=/x"],
    ...["networkPolicy.extraEgress[0].ports[0].port=8080", "tools.python.a\\.py=pass"],
  ],
};

async function temporaryDirectory(place: string): Promise<string> {
  const directory = await mkdtemp(join(place, "str-test-deploy-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** An overlay of these components, as one of an operator. */
async function composed(base: string, components: readonly string[]): Promise<string> {
  const directory = await temporaryDirectory(slowPlace);
  const at = (path: string) => relative(directory, join(kustomizations, path));
  const kustomization = {
    resources: [at(base)],
    components: components.map((component) => at(`components/${component}`)),
  };
  await writeFile(join(directory, "kustomization.yaml"), JSON.stringify(kustomization));
  return directory;
}

const overlayOf = (option: string) =>
  option === "no-capabilities" ? "base" : `overlays/${option}`;

interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [
    { readonly env: readonly { readonly name: string }[]; readonly image: string },
  ];
}
interface Deployment {
  readonly replicas?: number;
  readonly template: { readonly spec: Pod };
}

/** The resources in an order of their own, without what only one tool writes. */
function comparable({ resources }: Rendered): unknown {
  const plain = resources.map(({ metadata, ...resource }) => {
    const { annotations = {}, labels = {} } = metadata;
    const ofChart = ["app.kubernetes.io/version", "helm.sh/chart", "helm.sh/resource-policy"];
    const own = (pairs: object) =>
      Object.fromEntries(Object.entries(pairs).filter(([key]) => !ofChart.includes(key)));
    const named = { name: metadata.name, annotations: own(annotations), labels: own(labels) };
    // Components of Kustomize do not get the labels of the base.
    const isScaler = /^(?:ScaledObject|TriggerAuthentication)$/.test(resource.kind);
    return { ...sorted(resource), metadata: isScaler ? { ...named, labels: {} } : named };
  });
  return plain.toSorted((one, other) => one.kind.localeCompare(other.kind) || order(one, other));
}

function order(one: { metadata: { name: string } }, other: { metadata: { name: string } }): number {
  return one.metadata.name.localeCompare(other.metadata.name);
}

function sorted(resource: Omit<Resource, "metadata">): Omit<Resource, "metadata"> {
  if (resource.kind !== "Deployment") return resource;
  const copy = structuredClone(resource) as { kind: string; spec: { template: { spec: unknown } } };
  const pod = copy.spec.template.spec as Pod;
  const [container] = pod.containers;
  const env = container.env.toSorted((one, other) => one.name.localeCompare(other.name));
  const image = container.image.split(":")[0];
  copy.spec.template.spec = { ...pod, containers: [{ ...container, env, image }] };
  return copy;
}

const deploymentOf = ({ resources }: Rendered) =>
  resources.find(({ kind }) => kind === "Deployment")!.spec as Deployment;

describe("the chart", () => {
  test.for(options)("passes Helm's linter as %s", async (option, context) => {
    const lint = await helm(context, "lint", "--strict", "--set", `option=${option}`, chart);
    expect(lint).toContain("0 chart(s) failed");
  });

  test.for(Object.entries(variants))("is valid as %s", async ([, values], context) => {
    const { text, resources } = await rendered(context, values);
    for (const version of versions) {
      const validate = await kubeconform(context, version, await temporaryDirectory(slowPlace));
      expect(await validate(text)).toEqual({ valid: resources.length, problems: [] });
    }
  });

  test.for([
    ["option=root", "/option"],
    ["config.AMQP_URL=amqp://a", "AMQP_URL"],
    ["optoin=capabilities", "optoin"],
    ["config.HEALTH_PORT=0", "/config/HEALTH_PORT"],
  ])("refuses %s", async ([value = "", place = ""], context) => {
    await expect(rendered(context, [value])).rejects.toThrow(place);
  });

  test("grants the time that a longer drain takes", async (context) => {
    const chosen = await rendered(context, ["config.DRAIN_TIMEOUT_SECONDS=300"]);
    expect(deploymentOf(chosen).template.spec.terminationGracePeriodSeconds).toBe(330);
  });

  test("scales by the queue of its workers' group", async (context) => {
    for (const broker of ["rabbitmq", "solace"]) {
      const values = [...solace.slice(0, 1), `keda.broker=${broker}`];
      const group = ["config.SAM_NAMESPACE=a/b//", "config.WORKER_GROUP=heavy"];
      const { text, resources } = await rendered(context, [...values, ...group]);
      expect(text).toContain(`queueName: ${groupQueue("a/b//", "heavy", defaultQueue)}\n`);
      expect(deploymentOf({ text, resources }).replicas).toBeUndefined();
    }
  });
});

describe("Kustomize", () => {
  /** The tools of Kustomize's base. */
  const files = [
    `tools.manifest=${join(kustomizations, "base/manifest.yaml")}`,
    `tools.python.words\\.py=${join(kustomizations, "base/words.py")}`,
  ];

  test.for(options)("makes of %s what the chart does", async (option, context) => {
    const directory = join(kustomizations, overlayOf(option));
    const ofChart = await rendered(context, [`option=${option}`], files);
    expect(comparable(await kustomized(context, directory))).toEqual(comparable(ofChart));
  });

  test.for([
    ["keda-rabbitmq", ["keda.enabled=true"]],
    ["keda-solace", solace],
    ["s3", [...s3, `serviceAccount.annotations.eks\\.amazonaws\\.com/role-arn=${role}`]],
    [
      "gcs",
      [
        ...[...gcs, `serviceAccount.annotations.iam\\.gke\\.io/gcp-service-account=${account}`],
        ...["networkPolicy.extraEgress[0].to[0].ipBlock.cidr=169.254.169.254/32"],
        ...["networkPolicy.extraEgress[0].to[1].ipBlock.cidr=169.254.169.252/32"],
        ...["networkPolicy.extraEgress[0].ports[0].port=80"],
        ...["networkPolicy.extraEgress[0].ports[0].protocol=TCP"],
        ...["networkPolicy.extraEgress[0].ports[1].port=988"],
        ...["networkPolicy.extraEgress[0].ports[1].protocol=TCP"],
      ],
    ],
  ] as const)("makes with %s what the chart does", async ([component, values], context) => {
    const built = await kustomized(
      context,
      await composed("overlays/user-namespaces", [component]),
    );
    expect(comparable(built)).toEqual(comparable(await rendered(context, values, files)));
    const validate = await kubeconform(context, "1.37.0", await temporaryDirectory(slowPlace));
    expect(await validate(built.text)).toEqual({ valid: built.resources.length, problems: [] });
  });
});

test("the validation finds misspelled members, of Kubernetes and of KEDA", async (context) => {
  const { text } = await rendered(context, ["keda.enabled=true"]);
  const validate = await kubeconform(context, "1.37.0", await temporaryDirectory(slowPlace));
  const wrong = text
    .replace("hostUsers:", "hostUser:")
    .replace("pollingInterval:", "pollInterval:");
  expect((await validate(wrong)).problems.toSorted()).toEqual([
    expect.stringMatching(/^Deployment: [^]*hostUser/),
    expect.stringMatching(/^ScaledObject: [^]*pollInterval/),
  ]);
});
