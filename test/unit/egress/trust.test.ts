import { X509Certificate } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Trust } from "../../../worker/egress/edge/trust.ts";
import { Egress } from "../../../worker/egress/fabric.ts";
import { WorkerEndpoints } from "../../../worker/egress/resolve.ts";
import {
  type NetworkPolicy,
  networkField,
  toNetwork,
} from "../../../worker/protocol/network-rules.ts";
import { SandboxError } from "../../../worker/sandbox/sandbox.ts";
import { systemClock } from "../../../worker/support/clock.ts";

const policy = (...allow: readonly unknown[]): NetworkPolicy =>
  toNetwork(networkField.parse({ allow })) as NetworkPolicy;

const opened = (host: string): object => ({ host, methods: ["GET"] });

async function trust(): Promise<Trust> {
  const directory = await mkdtemp(join(tmpdir(), "trust-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return new Trust(directory, systemClock);
}

test("networks with the same opened hosts have one authority, others have another", async () => {
  const made = await trust();
  const one = await made.of(policy(opened("a.example.com"), opened("b.example.com")));
  const same = await made.of(
    policy(opened("b.example.com"), "c.example.com", opened("a.example.com")),
  );
  const other = await made.of(policy(opened("a.example.com")));
  expect(same).toBe(one);
  expect(other!.authority.certificate).not.toBe(one!.authority.certificate);
  expect(await made.of(policy("a.example.com"))).toBeUndefined();
});

test("what is trusted is the system's and the authority, in files that have no key", async () => {
  const { authority, files, environment } = (await (
    await trust()
  ).of(policy(opened("a.example.com"))))!;
  const inside = [environment.get("SSL_CERT_FILE")!, environment.get("NODE_EXTRA_CA_CERTS")!];
  expect(environment.get("REQUESTS_CA_BUNDLE")).toBe(inside[0]);
  const [bundle, alone] = await Promise.all(
    inside.map((path) => readFile(files.get(path)!, "utf8")),
  );
  const system = await readFile("/etc/ssl/certs/ca-certificates.crt", "utf8").catch(() => "");
  expect(bundle!.startsWith(system)).toBe(true);
  expect(bundle!.trim().endsWith(alone!.trim())).toBe(true);
  expect(new X509Certificate(alone!).raw).toEqual(new X509Certificate(authority.certificate).raw);
  for (const path of files.values()) {
    expect(await readFile(path, "utf8")).not.toContain("PRIVATE KEY");
    expect((await stat(path)).mode & 0o777).toBe(0o644);
  }
});

test("a network whose authority cannot be written is none, and says that it is the network", async () => {
  const scratchDir = await mkdtemp(join(tmpdir(), "trust-"));
  onTestFinished(() => rm(scratchDir, { recursive: true }));
  const egress = await Egress.open({
    ...{ scratchDir, clock: systemClock, resolve: () => Promise.resolve([]) },
    endpoints: new WorkerEndpoints([], systemClock),
  });
  await rm(scratchDir, { recursive: true });
  await writeFile(scratchDir, "");
  const made = egress.networkOf({ network: policy(opened("a.example.com")), readsEtc: false });
  await expect(made).rejects.toThrow(SandboxError);
  await expect(made).rejects.toMatchObject({ isEgress: true });
});
