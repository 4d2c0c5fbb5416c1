/**
 * Log events of the packages of tools.
 */
import type { LogEvent } from "./event.ts";

/** Events of the packages of tools, by name. */
export const packageEvents = {
  "packages.installing": {
    level: "info",
    message: "packages are being installed",
    facts: { key: "text", runtime: "text", packages: "text", tools: "list" },
    when: "An [environment](packages.md) of `tools` is being built.",
  },
  "packages.installed": {
    level: "info",
    message: "packages installed",
    facts: {
      key: "text",
      packages: "text",
      tools: "list",
      installer: "text",
      sizeBytes: "number",
      tookMs: "number",
    },
    when: "The environment is there; `tools` are served from now on.",
  },
  "packages.failed": {
    level: "warn",
    message: "packages could not be installed",
    facts: {
      key: "text",
      packages: "text",
      tools: "list",
      reason: "text",
      output: "text?",
      retryMs: "number?",
      err: "error?",
    },
    when: "`output` has the last lines of the installer. `tools` are not served, or by the packages that they had; the worker tries again after `retryMs`, a command that ends does not.",
    action: "Correct the requirements, or give access to the registry, by `output`.",
  },
  "packages.files_unusable": {
    level: "warn",
    message: "list of packages not usable, installed ones kept",
    facts: { tool: "text", reason: "text" },
    when: "The requirements file or lockfile of a served tool changed and is refused.",
    action: "Correct the file by `reason`.",
  },
  "packages.cache_unusable": {
    level: "warn",
    message: "cache of packages not usable",
    facts: { err: "error" },
    when: "An installation goes on without the [cache](packages.md#the-cache), or the cache could not be measured or emptied.",
    action: "Check `PACKAGE_DIR/cache` by `err`.",
  },
  "packages.removed": {
    level: "info",
    message: "unused environments removed",
    facts: { keys: "list", freedBytes: "number" },
    when: "No tool of a worker on this host uses them: for `PACKAGE_KEEP_DAYS`, or all environments exceed `PACKAGE_MAX_MB`.",
  },
  "packages.upkeep_failed": {
    level: "warn",
    message: "unused environments could not be removed",
    facts: { err: "error" },
    when: "The worker tries again after an hour.",
    action: "Check `PACKAGE_DIR` by `err`.",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
