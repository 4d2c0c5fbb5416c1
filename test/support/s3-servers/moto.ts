/**
 * moto, in Python: it verifies no signatures, but keeps conditions, parts and checksums.
 */
import { installPypiPackages, python } from "../pypi-packages.ts";
import type { S3Make } from "./server.ts";

/**
 * One request after the other, each on a connection of its own: threads would check conditions
 * before others have written.
 */
const program = `
import sys
from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

MotoRequestHandler.protocol_version = "HTTP/1.0"
application = DomainDispatcherApplication(create_backend_app)
run_simple("127.0.0.1", int(sys.argv[1]), application, request_handler=MotoRequestHandler)
`;

export const moto: S3Make = {
  credentials: { accessKeyId: "moto-access-key", secretAccessKey: "moto-secret-key" },
  install: async (_directory, port) => {
    const packages = await installPypiPackages(["moto[server,s3]==5.2.5"]);
    return {
      // Without the system's own packages, which may be too old for these.
      command: [python, "-S", "-c", program, String(port)],
      variables: { PYTHONPATH: packages },
    };
  },
};
