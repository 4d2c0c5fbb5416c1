/**
 * Lists what an image holds (CycloneDX): Debian's packages, npm's, and Node.
 */
import type { Engine } from "../container/engine.mjs";

const listTimeoutMs = 3 * 60_000;

/** Runs inside, by the image's own Node, and prints {@link Contents}. */
const list = `
const { execFileSync } = require("node:child_process");
const { readFileSync } = require("node:fs");
const run = (...command) =>
  execFileSync(command[0], command.slice(1), { encoding: "utf8", maxBuffer: 2 ** 26 })
    .split("\\n").filter((line) => line !== "");
const release = Object.fromEntries(
  run("cat", "/etc/os-release").map((line) => line.replaceAll('"', "").split("=")));
const debian = run("dpkg-query", "--show", "--showformat", "\${Package} \${Version} \${Architecture}\\n")
  .map((line) => line.split(" "))
  .map(([name, version, architecture]) => ({ name, version, architecture }));
const manifest = ".*/node_modules/\\\\(@[^/]+/\\\\)?[^/@]+/package[.]json";
const npm = run("find", "/", "-xdev", "-regex", manifest)
  .map((path) => JSON.parse(readFileSync(path, "utf8")))
  .filter(({ name, version }) => name !== undefined && version !== undefined)
  .map(({ name, version, license }) => ({ name, version, license }));
const { ID, VERSION_ID } = release;
console.log(JSON.stringify({ distribution: ID, release: VERSION_ID, debian, npm, node: process.version }));`;

interface Contents {
  /** `ID` of os-release(5), as `debian`. */
  readonly distribution: string;
  /** `VERSION_ID` of os-release(5). */
  readonly release: string;
  readonly debian: readonly Versioned<{ readonly architecture: string }>[];
  readonly npm: readonly Versioned<{ readonly license?: unknown }>[];
  /** As `v24.0.0`. */
  readonly node: string;
}

type Versioned<T> = T & { readonly name: string; readonly version: string };

/** What the SBOM says of the image itself. */
export interface DescribedImage {
  readonly name: string;
  readonly version: string;
  readonly id: string;
}

/** The SBOM of a built image. Throws if the image does not run. */
export function imageSbom(engine: Engine, tag: string, image: DescribedImage): object {
  const inside = ["--rm", "--network=none", "--user", "0", "--entrypoint", "node"];
  const command = ["run", ...inside, ...engine.runFlags, tag, "--eval", list];
  return sbomOf(JSON.parse(engine.mustRun(command, listTimeoutMs)) as Contents, image);
}

function sbomOf(contents: Contents, { name, version, id }: DescribedImage): object {
  const { distribution, release, debian, npm, node } = contents;
  const nodeVersion = node.slice(1);
  const distro = `distro=${distribution}-${release}`;
  const components = [
    { type: "operating-system", name: distribution, version: release, purl: undefined },
    {
      ...{ type: "application", name: "node", version: nodeVersion },
      purl: `pkg:generic/node@${nodeVersion}`,
      cpe: `cpe:2.3:a:nodejs:node.js:${nodeVersion}:*:*:*:*:*:*:*`,
    },
    ...debian.map(({ architecture, ...one }) => ({
      ...{ type: "library", ...one },
      purl: `pkg:deb/${distribution}/${purlOf(one)}?arch=${architecture}&${distro}`,
    })),
    ...npm.map(({ license, ...one }) => ({
      ...{ type: "library", ...one, purl: `pkg:npm/${purlOf(one)}` },
      ...(typeof license === "string" ? { licenses: [{ license: { name: license } }] } : {}),
    })),
  ];
  // One package may be installed in several places.
  const byReference = new Map(
    components.map(({ purl, ...component }) => {
      const reference = purl ?? component.name;
      return [reference, { "bom-ref": reference, ...component, purl }];
    }),
  );
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: {
      component: {
        ...{ "bom-ref": id, type: "container", name, version },
        properties: [{ name: "oci:image:id", value: id }],
      },
    },
    components: [...byReference.values()],
  };
}

/** `name@version` of a package URL, in which a scope's slash and an epoch's colon stay. */
function purlOf({ name, version }: Versioned<unknown>): string {
  const encoded = name.split("/").map(encodeURIComponent).join("/");
  return `${encoded}@${encodeURIComponent(version).replaceAll("%3A", ":")}`;
}
