/**
 * Where each version of control groups lets this worker make groups, as far as files tell.
 */
import type { CgroupControl } from "./cgroup.ts";
import { passOn } from "./delegation.ts";
import { type CgroupDialect, cgroupV1, cgroupV2 } from "./dialect.ts";
import { ownGroupV1, ownGroupV2 } from "./discovery.ts";
import type { CgroupFiles } from "./files.ts";
import type { CgroupParent } from "./group.ts";
import { CgroupRefusal } from "./refusal.ts";

const cgroupControls: readonly CgroupControl[] = ["memory", "processes", "cpu"];

/** What one version offers. */
export interface CgroupVersion {
  readonly dialect: CgroupDialect;
  readonly parents: readonly CgroupParent[];
  readonly refusals: readonly CgroupRefusal[];
  /** Restores the worker's own group, when no sandbox's group is left. */
  readonly own: Disposable;
}

/** Version 2: one hierarchy. Throws CgroupRefusal. */
export function findV2(files: CgroupFiles): CgroupVersion {
  const dialect = cgroupV2;
  const { directory, controllers } = ownGroupV2(files);
  const isThere = (control: CgroupControl): boolean => {
    const controller = dialect.controllers[control];
    return controller === undefined || controllers.includes(controller);
  };
  const refusals = cgroupControls
    .filter((control) => !isThere(control))
    .map((control) => {
      const message = `${directory} has no controller ${dialect.controllers[control]}`;
      return new CgroupRefusal("no-controllers", message);
    });
  const controls = cgroupControls.filter(isThere);
  const passed = controls.flatMap((control) => dialect.controllers[control] ?? []);
  if (passed.length === 0) return { dialect, parents: [], refusals, own: nothing };
  const own = passOn(files, directory, passed);
  return { dialect, parents: [{ directory, controls }], refusals, own };
}

/** Version 1: a hierarchy for each controller, or one for several. */
export function findV1(files: CgroupFiles): CgroupVersion {
  const controlsOf = new Map<string, CgroupControl[]>();
  const refusals: CgroupRefusal[] = [];
  for (const control of cgroupControls) {
    try {
      const { directory } = ownGroupV1(files, cgroupV1.controllers[control] ?? control);
      controlsOf.set(directory, [...(controlsOf.get(directory) ?? []), control]);
    } catch (error) {
      if (!(error instanceof CgroupRefusal)) throw error;
      refusals.push(error);
    }
  }
  const parents = [...controlsOf].map(([directory, controls]) => ({ directory, controls }));
  return { dialect: cgroupV1, parents, refusals, own: nothing };
}

const nothing: Disposable = { [Symbol.dispose]: () => undefined };
