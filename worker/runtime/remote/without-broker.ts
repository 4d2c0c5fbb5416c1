/**
 * Tools of other workers where there is no broker, such as in `harness tool run`.
 */
import { GatewayError } from "../../gateway/gateway.ts";
import { RemoteDirectory } from "../../gateway/remote.ts";
import type { Manifest } from "../../manifest/manifest.ts";
import type { RemoteTools } from "./remote-tools.ts";

/** Each call fails by `TOOL_NOT_AVAILABLE`, which no second one changes. */
export function withoutBroker({
  tools,
}: Pick<Manifest, "tools">): Pick<RemoteTools, "directory" | "call"> {
  const directory = new RemoteDirectory();
  directory.follow(tools.values().flatMap(({ gateway }) => gateway?.remote ?? []));
  return {
    directory,
    call: (_outer, { toolName }) => {
      const message = `The tool ${toolName} is one of other workers, and there is no broker here`;
      const options = { retryable: false };
      const error = new GatewayError("TOOL_NOT_AVAILABLE", "select_backend", message, options);
      return Promise.reject(error);
    },
  };
}
