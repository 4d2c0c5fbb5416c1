/** Serves the page on recorded data until it is interrupted; prints a link to it. */
import { once } from "node:events";
import { builtPage } from "./built-page.ts";
import { startStandIn } from "./stand-in-server.ts";

await using page = await builtPage();
await using console = await startStandIn(page.directory);
process.stdout.write(`${console.url}#token=${console.token}\n`);
await once(process, "SIGINT");
