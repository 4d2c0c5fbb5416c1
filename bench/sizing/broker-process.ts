/**
 * A broker in a process of its own, so that its processor time can be told from that of others. Its
 * argument is the kind. It sends its variables, and ends with the connection to its parent.
 */
import { once } from "node:events";
import { brokerKindOf, startBroker } from "../brokers.ts";

const disconnected = once(process, "disconnect");
await using broker = await startBroker(brokerKindOf(process.argv[2]));
process.send?.(broker.variables);
await disconnected;
