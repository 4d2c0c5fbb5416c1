/**
 * The network of tools whose manifest entries say nothing, by the variables of the worker.
 */
import { writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { patience } from "../../support/patience.ts";
import { loggedFacts } from "../../support/workers/kept-log.ts";
import { type RigTool, manifestText, startRig } from "../../support/workers/rig.ts";

const connects = `
import socket

def connects(host, port):
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    try:
        socket.create_connection((host, port), timeout=10).recv(1)
        return {"others": bool(others)}
    except OSError as error:
        return {"others": bool(others), "refused": type(error).__name__}
`;

const silent: RigTool = { module: "connecting", function: "connects" };
const tools = {
  silent,
  offline: { ...silent, network: "none" },
  shared: { ...silent, network: "host" },
  permissive: { ...silent, sandbox_profile: "permissive" },
} as const;

const rigWith = (environment: Record<string, string>) =>
  startRig({ tools, files: { "connecting.py": connects }, environment });

/** The metadata service of a cloud is at this address. */
const metadata = { host: "169.254.169.254", port: 80 };
const refused = {
  toolResult: { others: false, refused: "ConnectionResetError" },
  response: {
    result: { execution: { network: { refusals: [{ ...metadata, reason: "not-public" }] } } },
  },
};

const warnings = ["sandbox.host_network_default", "sandbox.host_network_replaced"] as const;

test(
  "is public under standard, and the host's where an entry or permissive says so",
  { tags: "promise-S34" },
  async () => {
    await using rig = await rigWith({});
    expect(await rig.call("silent", metadata)).toMatchObject(refused);
    for (const name of ["shared", "permissive"])
      expect(await rig.call(name, { host: "127.0.0.1", port: 1 })).toMatchObject({
        toolResult: { others: true },
      });
    for (const warning of warnings) expect(loggedFacts(rig.logLines, warning)).toEqual([]);
  },
);

test("is the host's under standard where the operator says so, with a warning", async () => {
  await using rig = await rigWith({ SANDBOX_DEFAULT_NETWORK: "host" });
  const here = { host: "127.0.0.1", port: 1 };
  expect(await rig.call("silent", here)).toMatchObject({ toolResult: { others: true } });
  expect(await rig.call("offline", here)).toMatchObject({ toolResult: { others: false } });
  const warned = (): unknown => loggedFacts(rig.logLines, warnings[0]);
  expect(warned()).toMatchObject([{ tools: ["silent", "permissive"] }]);
  await writeFile(rig.manifestPath, manifestText({ ...tools, another: silent }));
  await expect
    .poll(warned, patience)
    .toMatchObject([{ tools: ["silent", "permissive"] }, { tools: ["another"] }]);
});

test("is never the host's where the operator says so, with a warning", async () => {
  const variables = { SANDBOX_HOST_NETWORK: "public", SANDBOX_DEFAULT_NETWORK: "host" };
  await using rig = await rigWith(variables);
  for (const name of ["silent", "shared", "permissive"])
    expect(await rig.call(name, metadata)).toMatchObject(refused);
  expect(loggedFacts(rig.logLines, warnings[0])).toEqual([]);
  expect(loggedFacts(rig.logLines, warnings[1])).toMatchObject([
    { tools: ["silent", "shared", "permissive"] },
  ]);
});
