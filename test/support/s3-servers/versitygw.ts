/**
 * Versity's S3 gateway on files, in Go: it verifies signatures, conditions, checksums and policies.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { installGoProgram } from "../go-program.ts";
import type { S3Make } from "./server.ts";

const credentials = { accessKeyId: "versity-access-key", secretAccessKey: "versity-secret-key" };

/** The program. Rejects with NotInstalled. */
export function installVersitygw(): Promise<string> {
  return installGoProgram("github.com/versity/versitygw/cmd/versitygw", "v1.8.0");
}

export const versitygw: S3Make = {
  credentials,
  install: async (directory, port) => {
    const program = await installVersitygw();
    const [accounts, files] = [join(directory, "accounts"), join(directory, "files")];
    await mkdir(accounts);
    await mkdir(files);
    const listening = ["--port", `127.0.0.1:${port}`, "--keep-alive", "--quiet"];
    const { accessKeyId: ROOT_ACCESS_KEY, secretAccessKey: ROOT_SECRET_KEY } = credentials;
    return {
      command: [program, ...listening, "--iam-dir", accounts, "posix", files],
      variables: { ROOT_ACCESS_KEY, ROOT_SECRET_KEY },
    };
  },
};
