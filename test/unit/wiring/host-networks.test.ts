/**
 * Warnings of tools that have the host's network by a variable, or no longer have it.
 */
import { expect, test } from "vitest";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { toNetwork } from "../../../worker/protocol/network-rules.ts";
import { builtInProfilesWith } from "../../../worker/sandbox/profile.ts";
import { HostNetworkWarnings } from "../../../worker/wiring/host-networks.ts";
import { keptLog } from "../../support/workers/kept-log.ts";
import { manifest, tool } from "../manifest/fixtures.ts";

test.each([
  ["sandbox.host_network_default", "host", { network: undefined }],
  ["sandbox.host_network_replaced", "public", { network: "host" }],
] as const)("%s names each tool once, as long as it is concerned", (event, host, concerned) => {
  const log = keptLog();
  const variables = {
    defaultProfile: "standard",
    defaultNetwork: "host",
    hostNetwork: toNetwork(host),
  } as const;
  const warnings = new HostNetworkWarnings(variables, builtInProfilesWith("host"), log);
  const [first, second] = [tool("first", concerned), tool("second", { network: "none" })];
  const names = (...tools: readonly ToolEntry[]): readonly unknown[] => {
    const before = log.lines.length;
    warnings.follow(manifest(...tools));
    return log.lines.slice(before);
  };
  const naming = (...tools: readonly string[]) => [{ event, facts: { tools } }];
  expect(names(first, second)).toMatchObject(naming("first"));
  // Changed in another way, and changed so that it is concerned.
  const changed = tool("first", { ...concerned, timeoutSeconds: 5 });
  expect(names(changed, second)).toEqual([]);
  expect(names(changed, tool("second", concerned))).toMatchObject(naming("second"));
  expect(names(changed)).toEqual([]);
  expect(names(changed, tool("second", concerned))).toMatchObject(naming("second"));
});
