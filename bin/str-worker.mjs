#!/usr/bin/env node
/** The worker's command; `worker/main.ts` is the program. */
import { launch } from "./launch.mjs";

launch("worker/main");
