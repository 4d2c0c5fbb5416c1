/**
 * Attacks on files of the host and of other tools.
 */
import type { Attack } from "../attack.ts";
import { needsProc } from "./no-baseline.ts";

export const filesAttacks: readonly Attack[] = [
  {
    id: "read_host_secret",
    group: "files",
    title: "read a file of the host that every user may read",
    isFast: true,
  },
  {
    id: "list_home_directories",
    group: "files",
    title: "list home directories and data of services",
    isFast: false,
  },
  {
    id: "read_host_configuration",
    group: "files",
    title: "read the host's users and settings in /etc",
    isFast: false,
    notPromised: ({ name, readsEtc }) =>
      readsEtc ? `the profile ${name} shows what everybody may read in /etc` : undefined,
  },
  {
    id: "read_host_keys",
    group: "files",
    title: "read passwords and keys that only root may read",
    isFast: false,
  },
  {
    id: "write_outside",
    group: "files",
    title: "write where only others may, or over shared programs",
    isFast: true,
  },
  {
    id: "write_shared_mounts",
    group: "files",
    title: "find a writable mount of what calls share, such as tool directories",
    isFast: true,
  },
  {
    id: "reach_template_directory",
    group: "files",
    title: "reach the work directory of the template that its sandbox comes from",
    isFast: false,
    baseline: "naive-template",
    noBaseline: needsProc,
  },
  {
    id: "read_other_tools",
    group: "files",
    title: "read another tool's source from an isolated tool",
    isFast: true,
    manifest: { isolate: true },
  },
  {
    id: "read_sibling_work_dir",
    group: "files",
    title: "read files of a call that runs at the same time",
    isFast: true,
    needsVictim: true,
  },
];
