/**
 * The user and the capabilities of each option of docs/kubernetes.md, in containers: the doctor
 * says whether a worker would start.
 *
 * @module-tag full
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { checkoutInside, nodeInside } from "../../support/containers/oci-bundle.ts";
import { OciRuntime } from "../../support/containers/oci-runtime.ts";

const overlay = join(
  import.meta.dirname,
  "../../../deploy/kustomize/overlays/capabilities/kustomization.yaml",
);
const [, list = ""] = /value: \[([A-Z_, ]+)\]/.exec(readFileSync(overlay, "utf8"))!;
/** Of option B. */
const capabilities = list.split(", ").map((name) => `CAP_${name}`);

const without = (name: string) => capabilities.filter((capability) => capability !== `CAP_${name}`);
/** What the doctor says, in a minute: a worker that cannot stop sandboxes does not end. */
const doctor = ["timeout", "60", nodeInside, `${checkoutInside}/bin/str-worker.mjs`, "doctor"];

describe("a worker starts", () => {
  test.for([
    ["user-namespaces", { uid: 1000 }, "held"],
    ["no-capabilities", { uid: 1000, isProcMasked: true }, "missing"],
    ["capabilities", { uid: 0, capabilities, isProcMasked: true }, "missing"],
  ] as const)("as %s", async ([, options, freshProc], context) => {
    const end = await (await OciRuntime.open(context)).run(options, doctor);
    expect(end).toMatchObject({ status: 0 });
    expect(end.stdout).toMatch(new RegExp(`^${freshProc} +fresh-proc`, "m"));
  });
});

describe("a worker does not start", () => {
  test.for(["SYS_PTRACE", "SETUID", "SETGID", "CHOWN", "DAC_OVERRIDE"])(
    "as root with the capabilities but %s",
    async (name, context) => {
      const options = { uid: 0, capabilities: without(name), isProcMasked: true };
      const end = await (await OciRuntime.open(context)).run(options, doctor);
      expect(end.status).not.toBe(0);
    },
  );

  test.for([
    ["A", ["SETFCAP"]],
    ["B", ["SYS_ADMIN", "NET_ADMIN", "SYS_CHROOT"]],
  ] as const)(
    "as root with the design document's capabilities %s alone",
    async ([, names], context) => {
      const all = names.map((name) => `CAP_${name}`);
      const end = await (await OciRuntime.open(context)).run({ uid: 0, capabilities: all }, doctor);
      expect(end.status).not.toBe(0);
    },
  );
});
