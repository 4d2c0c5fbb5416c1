#!/usr/bin/env node
/**
 * The command of whatever stands on the other side of the broker; `harness/cli.ts` is the program.
 */
import { launch } from "./launch.mjs";

launch("harness/cli");
