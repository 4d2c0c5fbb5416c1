/**
 * Children of a template of Node, attacked by the same Python modules, which they become.
 *
 * @module-tag full
 */
import { runPythonInNode } from "../../support/sandboxes/template-host.ts";

runPythonInNode();

await import("../../security/template.test.ts");
