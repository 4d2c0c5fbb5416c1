/**
 * The S3 double in a process of its own, so that what this one keeps is the store's.
 */
import { afterAll, beforeAll } from "vitest";
import { CliProcess } from "../integration/harness/cli-process.ts";
import { useCredentials } from "./s3.ts";

/** Starts `harness fake-s3` for the tests of a file. Returns its endpoint. */
export function useFakeS3Process(argv: readonly string[] = []): () => string {
  let command: CliProcess;
  const variables = new Map<string, string>();
  const value = (name: string): string => variables.get(name) ?? "";
  beforeAll(async () => {
    command = new CliProcess(["fake-s3", "--port", "0", ...argv]);
    for (const name of ["ARTIFACT_S3_ENDPOINT", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]) {
      const [, said = ""] = await command.said("stdout", new RegExp(`^export ${name}=(.*)$`, "m"));
      variables.set(name, said);
    }
    useCredentials(value("AWS_ACCESS_KEY_ID"), value("AWS_SECRET_ACCESS_KEY"));
  });
  afterAll(() => command[Symbol.asyncDispose]());
  return () => value("ARTIFACT_S3_ENDPOINT");
}
