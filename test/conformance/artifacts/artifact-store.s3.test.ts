/**
 * The S3 store, held to the contract of every store, with the real SDK over HTTP. The server has a
 * process of its own, so that what this one keeps is the store's.
 */
import { afterAll, beforeAll } from "vitest";
import { CliProcess } from "../../integration/harness/cli-process.ts";
import { s3Store, useCredentials } from "../../support/s3.ts";
import { describeArtifactStore } from "./artifact-store.ts";

let command: CliProcess;
const variables = new Map<string, string>();
beforeAll(async () => {
  command = new CliProcess(["fake-s3", "--port", "0"]);
  for (const name of ["ARTIFACT_S3_ENDPOINT", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]) {
    const [, value = ""] = await command.said("stdout", new RegExp(`^export ${name}=(.*)$`, "m"));
    variables.set(name, value);
  }
  const value = (name: string): string => variables.get(name) ?? "";
  useCredentials(value("AWS_ACCESS_KEY_ID"), value("AWS_SECRET_ACCESS_KEY"));
});
afterAll(() => command[Symbol.asyncDispose]());

describeArtifactStore("s3", () =>
  Promise.resolve(s3Store(variables.get("ARTIFACT_S3_ENDPOINT") ?? "", "artifacts")),
);
