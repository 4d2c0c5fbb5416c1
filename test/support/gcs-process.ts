/**
 * The double of Cloud Storage in a process of its own, so that what this one keeps is the store's.
 */
import { afterAll, beforeAll } from "vitest";
import { CliProcess } from "../integration/harness/cli-process.ts";
import { useGcsCredentials } from "./gcs.ts";

/** Starts `harness fake-gcs` for the tests of a file. Returns its endpoint. */
export function useFakeGcsProcess(): () => string {
  let command: CliProcess;
  let endpoint: string;
  beforeAll(async () => {
    command = new CliProcess(["fake-gcs", "--port", "0"]);
    const value = async (name: string): Promise<string> => {
      const [, said = ""] = await command.said("stdout", new RegExp(`^export ${name}=(.*)$`, "m"));
      return said;
    };
    endpoint = await value("ARTIFACT_GCS_ENDPOINT");
    useGcsCredentials(await value("GOOGLE_APPLICATION_CREDENTIALS"));
  });
  afterAll(() => command[Symbol.asyncDispose]());
  return () => endpoint;
}
