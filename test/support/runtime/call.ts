/**
 * A process that executes code on a far side. Its arguments are the URL and the code.
 */
import { createFunctionGateway } from "../../../worker/gateway/functions.ts";
import { openRemote } from "../../../worker/runtime/service/remote.ts";

const [, , url = "", code = ""] = process.argv;
const backend = await openRemote({ url });
await backend.execute({ code, gateway: createFunctionGateway([]) });
