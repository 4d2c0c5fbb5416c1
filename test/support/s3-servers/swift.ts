/**
 * OpenStack Swift with its S3 layer, in Python: it verifies signatures.
 */
import { fileURLToPath } from "node:url";
import { installPypiPackages, python } from "../pypi-packages.ts";
import type { S3Make } from "./server.ts";

const program = fileURLToPath(
  new URL("../../fixtures/s3-servers/swift_server.py", import.meta.url),
);

const credentials = {
  /** Account and user of its own authentication. */
  accessKeyId: "test:tester",
  secretAccessKey: "swift-secret-key",
};

export const swift: S3Make = {
  credentials,
  install: async (directory, port) => {
    const packages = await installPypiPackages(["swift==2.38.3"]);
    return {
      // Without the system's own packages, which may be too old for these.
      command: [python, "-S", program, directory, String(port), credentials.secretAccessKey],
      variables: { PYTHONPATH: packages },
    };
  },
};
