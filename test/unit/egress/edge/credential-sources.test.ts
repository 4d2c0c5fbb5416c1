/**
 * Sources of credentials that the operator allows.
 */
import { expect, test } from "vitest";
import { CredentialSources } from "../../../../worker/egress/edge/credential-sources.ts";
import { toSource } from "../../../../worker/protocol/credential.ts";
import { toPattern } from "../../../../worker/protocol/host-pattern.ts";
import { networkField, toNetwork } from "../../../../worker/protocol/network-rules.ts";

const host = "api.example.com";

/** Why a tool with this credential is not served. */
function refusalOf(value: string, allowed = ["file:/run/secrets", "env:OTHER"]) {
  const sources = new CredentialSources({
    allowed: allowed.map(toSource),
    ownFiles: ["/run/secrets/broker", "/run/secrets//store"],
  });
  const credential = {
    ...{ name: "key", source: toSource(value), hosts: [toPattern(host)] },
    use: { kind: "query", parameter: "key" },
  } as const;
  const field = networkField.parse({ allow: ["a.example.com", { host, credential: "key" }] });
  return sources.refuse({ network: toNetwork(field, new Map([["key", credential]])) });
}

test.each(["file:/run/secrets/other", "env:OTHER"])("%s is allowed", (value) => {
  expect(refusalOf(value)).toBeUndefined();
});

test.each([
  "env:SOLACE_PASSWORD",
  "env:OTHER_",
  "file:/etc/shadow",
  "file:/run/secrets.old/other",
  // Kubernetes puts the account of the worker there.
  "file:/run/secrets/kubernetes.io/serviceaccount/token",
  "file:/run/secrets/../../etc/shadow",
  "file:/run/secrets/link/../other",
])("%s is not allowed", { tags: "promise-S39" }, (value) => {
  const publicReason = 'the value of its credential "key" is not allowed by CREDENTIAL_SOURCES';
  expect(refusalOf(value)).toEqual({
    reason: `${publicReason}: add ${value} to it`,
    publicReason,
  });
});

test.each(["broker", "store"])(
  "the worker's own secret %s is not allowed, whatever is listed",
  { tags: "promise-S39" },
  (name) => {
    const value = `file:/run/secrets/${name}`;
    const reason = expect.stringMatching(/: \S+ is a file of the worker's own$/) as string;
    for (const allowed of ["file:/run/secrets", value])
      expect(refusalOf(value, [allowed])).toMatchObject({ reason });
    const spelled = `file:/run//secrets/${name}`;
    expect(refusalOf(spelled, ["file:/run//secrets"])).toMatchObject({ reason });
  },
);

test("a file may be allowed by itself", () => {
  expect(refusalOf("file:/etc/keys/one", ["file:/etc/keys/one"])).toBeUndefined();
  expect(refusalOf("file:/etc/keys/two", ["file:/etc/keys/one"])).toBeDefined();
  expect(refusalOf("env:OTHER", [])).toBeDefined();
});

test.each(["none", "host", undefined] as const)(
  "a tool with the network %s is served",
  (network) => {
    const sources = new CredentialSources({ allowed: [], ownFiles: [] });
    expect(sources.refuse({ network })).toBeUndefined();
  },
);
