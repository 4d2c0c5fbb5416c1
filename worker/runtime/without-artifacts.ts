/**
 * A gateway of a program that has no artifacts.
 */
import { GatewayError, type ProgramGateway, type ToolGateway } from "../gateway/gateway.ts";

export function withoutArtifacts(gateway: ToolGateway): ProgramGateway {
  return {
    searchTools: (...given) => gateway.searchTools(...given),
    listNamespaces: (...given) => gateway.listNamespaces(...given),
    describeTool: (...given) => gateway.describeTool(...given),
    listToolExamples: (...given) => gateway.listToolExamples(...given),
    runTool: (...given) => gateway.runTool(...given),
    runChain: (...given) => gateway.runChain(...given),
    loadArtifact: async () => {
      throw new GatewayError("NOT_ALLOWED", "resolve", "The program has no artifacts");
    },
  };
}
