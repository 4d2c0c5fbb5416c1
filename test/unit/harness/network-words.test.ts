import { expect, test } from "vitest";
import { ruleWords } from "../../../harness/network/words.ts";
import type { Credential } from "../../../worker/protocol/credential.ts";
import { networkField, toNetwork } from "../../../worker/protocol/network-rules.ts";

test.each([
  ["a.example.com", "a.example.com on port 443"],
  [
    { host: "a.example.com", methods: ["GET", "HEAD"], paths: ["/v1/*"] },
    "a.example.com on port 443, requests GET, HEAD for /v1/*, opened by the worker",
  ],
  [
    { host: "a.example.com", credential: "other" },
    "a.example.com on port 443, requests with the credential other, opened by the worker",
  ],
])("%j is in words: %s", (rule, words) => {
  const credentials = new Map([["other", { name: "other" } as Credential]]);
  const network = toNetwork(networkField.parse({ allow: [rule] }), credentials);
  if (typeof network === "string") throw new Error(network);
  expect(network.lists[0]!.map(ruleWords)).toEqual([words]);
});
