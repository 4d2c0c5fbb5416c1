/**
 * Weaknesses that are planted in a copy of this project, each by small edits, and what of the
 * doctor has to name them.
 */
import type { AttackStart } from "../../../worker/doctor/attacks/attack-starts.ts";

/** A text that stands once in a file, and what stands there then. */
export interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** What has to be said of a weakness. */
export type Named =
  /** Attacks that are not held, by the start. */
  | { readonly attacks: readonly string[]; readonly start?: AttackStart; readonly profile?: string }
  /** Words by which tools are said not to work, by the start. */
  | { readonly use: string; readonly start: AttackStart; readonly profile?: string }
  /** Words of a check, as the doctor without attacks says them. */
  | { readonly finding: string }
  /** Words by which a worker does not start. */
  | { readonly refusal: string };

export interface PlantedWeakness {
  readonly what: string;
  readonly edits: readonly Edit[];
  readonly named: Named;
}

const argv = "worker/sandbox/bubblewrap/argv.ts";
const bwrapProcess = "worker/sandbox/bubblewrap/process.ts";
const bwrapExecution = "worker/sandbox/bubblewrap/execution.ts";
const coldSandbox = "worker/sandbox/bubblewrap/cold-sandbox.ts";
const isolation = "tool-runner/native/isolation.c";
const children = "tool-runner/native/child.c";
const rlimits = "worker/sandbox/rlimits.ts";
const inspections = "worker/sandbox/bubblewrap/seccomp/inspections.ts";

/**
 * Sandboxes for tools only: trials at the start are made as they should be, since a worker refuses
 * to start without.
 */
function optionsOfTools(edit: string): Edit {
  return {
    file: coldSandbox,
    from: "options: bwrapOptions({",
    to: `options: ${edit}(bwrapOptions({`,
  };
}

const endOfToolOptions = {
  file: coldSandbox,
  from: `          templateDir,
        }),`,
  to: `          templateDir,
        })),`,
} as const;

/** Options of bubblewrap for tools, changed by a function over the list. */
function changed(edit: string): readonly Edit[] {
  return [optionsOfTools(`((list: readonly string[]) => ${edit})`), endOfToolOptions];
}

/** Namespaces one by one, but for one kind. */
function allNamespacesBut(kind: string): readonly Edit[] {
  const others = ["ipc", "pid", "net", "uts", "cgroup"].filter((other) => other !== kind);
  const options = others.map((other) => `"--unshare-${other}"`).join(", ");
  return changed(`list.flatMap((one) => one === "--unshare-all" ? [${options}] : [one])`);
}

/** A limit that the kernel keeps, and that is not set. */
function noRlimit(name: string, bound: string): readonly Edit[] {
  return [{ file: rlimits, from: `${name}: { bound: ${bound}`, to: `${name}: { bound: Infinity` }];
}

/**
 * A limit that tools do not have: that of the kernel for each process, or that of all processes
 * together.
 */
function unlimited(name: string, kept: "kernel" | "totals"): readonly Edit[] {
  const most = `{ ...LIMITS, ${name}: ${name === "processes" ? 10_000 : "2 ** 30"} }`;
  if (kept === "kernel")
    return [
      {
        file: coldSandbox,
        from: "limitPrefix(limits, memoryBound,",
        to: `limitPrefix(${most.replace("LIMITS", "limits")}, memoryBound,`,
      },
    ];
  const edit = {
    from: "limits: this.limits,",
    to: `limits: ${most.replace("LIMITS", "this.limits")},`,
  };
  return [{ file: coldSandbox, ...edit }];
}

const byTemplate = { start: "template", profile: "standard" } as const;

/** Those of a sandbox that a template makes. */
const templateWeaknesses: readonly PlantedWeakness[] = [
  {
    what: "children of a template have no filter of system calls",
    edits: [
      {
        file: isolation,
        from: "syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0",
        to: "program.len == 0",
      },
    ],
    named: { attacks: ["system_calls"], ...byTemplate },
  },
  {
    what: "children of a template cannot be made, since their filter is no program",
    edits: [
      {
        file: "worker/sandbox/bubblewrap/template/template-settings.ts",
        from: 'filter: Buffer.from(filter).toString("hex"),',
        to: 'filter: "00".repeat(8),',
      },
    ],
    named: { use: "no sandbox was ready", ...byTemplate },
  },
  {
    what: "children of a template keep capabilities",
    edits: [
      { file: isolation, from: "syscall(SYS_capset, &header, none) < 0", to: "header.pid < 0" },
    ],
    named: { attacks: ["capabilities"], ...byTemplate },
  },
  {
    what: "children of a template are in its ipc namespace",
    edits: [{ file: isolation, from: "CLONE_NEWIPC | CLONE_NEWUTS", to: "CLONE_NEWUTS" }],
    named: { attacks: ["share_namespaces"], ...byTemplate },
  },
  {
    what: "children of a template see its processes",
    edits: [
      {
        file: isolation,
        from: 'if (!mounted("proc", "/proc", "proc", nothing, NULL, failure)) return 0;',
        to: "",
      },
    ],
    named: { attacks: ["list_template_processes"], ...byTemplate },
  },
  {
    what: "children of a template see the work directories of each other",
    edits: [
      {
        file: isolation,
        from: 'if (!mounted("tmpfs", template_directory,',
        to: 'if (nothing == 0 && !mounted("tmpfs", template_directory,',
      },
      {
        file: "worker/sandbox/work/work-base.ts",
        from: "passable = 0o711",
        to: "passable = 0o755",
      },
    ],
    named: { attacks: ["read_sibling_work_dir"], ...byTemplate },
  },
  {
    what: "children of a template reach its work directory",
    edits: [
      {
        file: isolation,
        from: "  if (!mounted(own, work_directory",
        to: '  mounted(work_directory, "/usr/share", NULL, bound, NULL, failure);\n  if (!mounted(own, work_directory',
      },
    ],
    named: { attacks: ["reach_template_directory"], ...byTemplate },
  },
  {
    what: "children of a template have temporary files in common",
    edits: [
      {
        file: isolation,
        from: "index < settings->mount_count",
        to: "index + max_mounts < settings->mount_count",
      },
    ],
    named: { attacks: ["leave_files"], ...byTemplate },
  },
  {
    what: "children of a template have no limits of the kernel",
    edits: [
      {
        file: isolation,
        from: "if (syscall(SYS_prlimit64, 0, limit->resource, bounds, NULL) < 0)",
        to: "if (bounds[0] > bounds[1])",
      },
    ],
    named: { attacks: ["inherited_limits", "open_many_files"], ...byTemplate },
  },
  {
    what: "children of a template keep what it has open",
    edits: [
      {
        file: children,
        from: "if (connection >= 0) syscall(SYS_close, connection);",
        to: "(void)connection;",
      },
      // It would close them once more.
      {
        file: "tool-runner/python/tool_runner/forks/children.py",
        from: "close_all_but({0, 1, 2, self._channel.descriptor} | {self._gateway} - {None})",
        to: "pass",
      },
    ],
    named: { attacks: ["inherited_descriptors"], ...byTemplate },
  },
];

const proxyHost = "worker/gateway/proxy/host.ts";

/** Those of a tool that calls others. */
const gatewayWeaknesses: readonly PlantedWeakness[] = [
  {
    what: "a tool may call all tools",
    edits: [
      {
        file: "worker/gateway/direct.ts",
        from: "return this.#scope.allows(id) && this.#requested.allows(id);",
        to: "return this.#requested.allows(id);",
      },
    ],
    named: { attacks: ["call_unlisted_tools"] },
  },
  {
    what: "a tool finds tools that allow no programs",
    edits: [
      {
        file: "worker/runtime/callable-tools.ts",
        from: 'catalog.allowedCallers.has("programmatic")',
        to: "catalog.allowedCallers.size > 0",
      },
    ],
    named: { attacks: ["call_unlisted_tools"] },
  },
  {
    what: "the arguments of an inner call name its user",
    edits: [
      {
        file: "worker/runtime/run-inner-call.ts",
        from: "    caller: invocation.caller,",
        to: '    caller: { ...invocation.caller, ...("user_id" in args && { userId: String(args["user_id"]) }) },',
      },
    ],
    named: { attacks: ["call_as_another"] },
  },
  {
    what: "the arguments of an inner call name its profile",
    edits: [
      {
        file: "worker/runtime/run-inner-call.ts",
        from: "    requestedProfile: invocation.requestedProfile,",
        to: '    requestedProfile: "profile" in args ? String(args["profile"]) : invocation.requestedProfile,',
      },
      {
        file: "worker/sandbox/choose-profile.ts",
        from: "if (requested === undefined) return granted;",
        to: 'if (requested === undefined || requested.name === "permissive") return requested ?? granted;',
      },
    ],
    named: { attacks: ["call_under_wider_profile"] },
  },
  {
    what: "a program has the value that it prints",
    edits: [
      {
        file: "tool-runner/python/tool_runner/programs/program.py",
        from: 'return {"value": value, **written, "displays": self._displays}',
        to: `_, mark, printed = written["stdout"].partition("__RESULT__:")
        if mark:
            value = __import__("json").loads(printed.splitlines()[0])["result"]["value"]
        return {"value": value, **written, "displays": self._displays}`,
      },
    ],
    named: { attacks: ["program_printed"], start: "template" },
  },
  {
    what: "texts stand in stubs as they are",
    edits: [
      {
        file: "worker/gateway/stubs/text.ts",
        from: '.replaceAll(/["\\\\]/g, "\\\\$&")',
        to: "",
      },
    ],
    named: { attacks: ["break_out_of_stubs"] },
  },
  {
    what: "calls in calls have no bound",
    edits: [
      {
        file: "worker/gateway/budget.ts",
        from: "if (this.callDepth > maxDepth) {",
        to: "if (this.callDepth > maxDepth + 10) {",
      },
    ],
    named: { attacks: ["recurse_by_calls"] },
  },
  {
    what: "ids of tools are shown as they are",
    edits: [
      {
        file: "worker/protocol/tool-calls/tool-id.ts",
        from: "const shown = withoutDeceptive(id.slice(0, 2 * maxIdPartLength + 1).toWellFormed());",
        to: 'const shown = id.length === 0 ? withoutDeceptive("") : id;',
      },
    ],
    named: { attacks: ["call_by_strange_names"] },
  },
  {
    what: "a request has no bound",
    edits: [
      {
        file: proxyHost,
        from: "readFrames(this.#channel, maxRequestBytes)",
        to: "readFrames(this.#channel, 64 * maxRequestBytes)",
      },
    ],
    named: { attacks: ["endless_request"] },
  },
  {
    what: "inner calls go on after the end of their tool",
    edits: [
      {
        file: proxyHost,
        from: "for (const controller of this.#inFlight.values()) controller.abort(reason);",
        to: "",
      },
      {
        file: proxyHost,
        from: "void Promise.all(this.#running).then(() => this.#ended.resolve(end));",
        to: "this.#ended.resolve(end);",
      },
    ],
    named: { attacks: ["outlive_by_calls"] },
  },
];

const tcp = "worker/egress/tcp.ts";
const door = "worker/sandbox/network/native/door.c";

/** Those of a sandbox that may reach some hosts. */
const egressWeaknesses: readonly PlantedWeakness[] = [
  {
    what: "a list of hosts has every name below its names",
    edits: [
      {
        file: "worker/protocol/host-pattern.ts",
        from: "return name === host.name;",
        to: "return name.endsWith(host.name);",
      },
    ],
    named: { attacks: ["leak_by_names"] },
  },
  {
    what: "a list of hosts allows every address",
    edits: [
      {
        file: tcp,
        from: "const grant = grantFor(policy, destination);",
        to: "const grant = { ...grantFor(policy, destination), allowsPrivate: true, allowsAnySni: false };",
      },
    ],
    named: { attacks: ["reach_unlisted_addresses", "connect_by_proxy", "follow_redirect"] },
  },
  {
    what: "a connection that no rule allows stays open",
    edits: [
      {
        file: tcp,
        from: 'if (grant === undefined) throw new RefusedError("no-rule");',
        to: "if (grant === undefined) return;",
      },
    ],
    named: { attacks: ["reach_unlisted_metadata"] },
  },
  {
    what: "children of a template share a network",
    edits: [
      { file: isolation, from: "flags |= CLONE_NEWNET", to: "flags |= 0" },
      {
        file: isolation,
        from: "return settings->has_network || raise_loopback(failure);",
        to: "return settings != NULL || raise_loopback(failure);",
      },
      // Else the door fails for the second, whose route and sockets are there; either may serve it.
      {
        file: "worker/egress/fabric.ts",
        from: "const names = new SandboxNames();",
        to: `const all = globalThis as { names?: SandboxNames };
    const names = (all.names ??= new SandboxNames());`,
      },
      { file: door, from: "return errno != 0 ?", to: "return errno != 0 && errno != EEXIST ?" },
      {
        file: door,
        from: "  if (bind(made,",
        to: `  const int on = 1;
  setsockopt(made, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (bind(made,`,
      },
    ],
    named: { attacks: ["reach_other_sandbox"], ...byTemplate },
  },
  {
    what: "a listed name may lead to the host's own address",
    edits: [
      {
        file: "worker/egress/upstream.ts",
        from: "if (!grant.allowsPrivate && (!isPublic(address) || isOwn(address)))",
        to: "if (!grant.allowsPrivate && !isPublic(address) && !isOwn(address))",
      },
    ],
    named: { attacks: ["reach_private_by_name"] },
  },
  {
    what: "a listed name may lead to an address that is not public",
    edits: [
      {
        file: "worker/egress/upstream.ts",
        from: "if (!grant.allowsPrivate && (!isPublic(address) || isOwn(address)))",
        to: "if (!grant.allowsPrivate && isOwn(address))",
      },
    ],
    named: { attacks: ["reach_metadata_by_name"] },
  },
  {
    what: "a list of hosts bounds no connections",
    edits: [
      {
        file: tcp,
        from: "this.#open.size >= policy.maxConnections ||",
        to: "this.#open.size < 0 ||",
      },
    ],
    named: { attacks: ["many_connections"] },
  },
  {
    what: "TLS to a listed host may ask for another",
    edits: [
      {
        file: "worker/egress/first-bytes.ts",
        from: "const isSame = serverName.toLowerCase() === destination.name;",
        to: 'const isSame = serverName !== "";',
      },
    ],
    named: { attacks: ["name_another_in_tls"] },
  },
  {
    what: "only the first address of a name is checked",
    edits: [
      {
        file: "worker/egress/upstream.ts",
        from: "for (const address of addresses) {",
        to: "for (const address of addresses.slice(0, 1)) {",
      },
    ],
    named: { attacks: ["rebind_name"] },
  },
  {
    what: "a list of hosts has every port of its names",
    edits: [
      {
        file: "worker/egress/policy.ts",
        from: "if (!ports.includes(destination.port)) return false;",
        to: "if (ports.length === 0) return false;",
      },
    ],
    named: { attacks: ["connect_by_proxy"] },
  },
  {
    what: "a sandbox makes any number of connections in all",
    edits: [
      { file: tcp, from: "record.connections >= maxConnectionsInAll;", to: "false;" },
      {
        file: tcp,
        from: "if (record.connections + 1 === maxConnectionsInAll) this.#parts.onLast();",
        to: "",
      },
    ],
    named: { attacks: ["many_connections_in_all"] },
  },
  {
    what: "the proxy passes Host on as it is",
    edits: [
      {
        file: "worker/egress/http-proxy.ts",
        from: "filter(([name]) => !/^host$/i.test(name));",
        to: 'filter(([name]) => name !== "");',
      },
      {
        file: "worker/egress/http-proxy.ts",
        from: 'headers: [["Host", hostOf(target)], ...others],',
        to: 'headers: hostOf(target) === "" ? [] : others,',
      },
      {
        file: "worker/egress/proxy-target.ts",
        from: "if (!isSame) fail(",
        to: "if (target.port === 0) fail(",
      },
    ],
    named: { attacks: ["name_another_by_proxy"] },
  },
  {
    what: "the proxy sends the requests of a connection on in one piece",
    edits: [
      {
        file: "worker/egress/http-proxy.ts",
        from: '    this.#server.emit("connection", client);',
        to: `    client.once("data", (chunk: Buffer) => {
      const [, host = "", port = ""] = /http:\\/\\/([^:/]+):([0-9]+)/.exec(String(chunk)) ?? [];
      client.pause().unshift(chunk);
      if (String(chunk).startsWith("POST"))
        return void client.pipe(this.#connect({ host, port: Number(port) })).pipe(client);
      this.#server?.emit("connection", client);
      client.resume();
    });`,
      },
    ],
    named: { attacks: ["smuggle_requests"] },
  },
  ...(
    [
      ["time", "headersTimeout: headersTimeoutMs", "headersTimeout: 0", "slow_header"],
      ["size", "maxHeaderSize: maxHeaderBytes", "maxHeaderSize: 2 ** 30", "endless_header"],
    ] as const
  ).map(([what, from, to, attack]) => ({
    what: `headers of requests have no bound of ${what}`,
    edits: [{ file: "worker/egress/http-server.ts", from, to }],
    named: { attacks: [attack] },
  })),
  {
    what: "sandboxes keep capabilities over their network",
    edits: [
      { file: argv, from: '["--cap-drop", "ALL"]', to: '["--cap-add", "ALL"]' },
      // Or they hold in a user namespace below that of the network.
      {
        file: argv,
        from: 'templateDir === undefined ? ["--disable-userns"]',
        to: 'templateDir === "" ? ["--disable-userns"]',
      },
    ],
    named: { attacks: ["change_routes", "reach_by_datagrams"] },
  },
  {
    what: "the files of name service are writable",
    edits: [
      {
        file: "worker/egress/fabric.ts",
        from: "await writeFile(source, content, { mode: 0o644 });",
        to: `await writeFile(source, content);
      process.getBuiltinModule("node:fs").chmodSync(source, 0o666);`,
      },
      ...changed(
        'list.map((one, at) => (/^\\/etc\\/(hosts|resolv|nsswitch)/.test(list[at + 2] ?? "") ? "--bind" : one))',
      ),
    ],
    named: { attacks: ["change_name_service"] },
  },
];

export const weaknesses: readonly PlantedWeakness[] = [
  {
    what: "tool directories are mounted writable",
    edits: [
      {
        file: argv,
        from: '["--ro-bind", mount.source, mount.target]',
        to: '["--bind", mount.source, mount.target]',
      },
    ],
    named: { attacks: ["write_shared_mounts"] },
  },
  {
    what: "the host's /etc is there",
    edits: [{ file: argv, from: "if (profile.readsEtc) {", to: "if (profile.name !== '') {" }],
    named: { attacks: ["read_host_configuration"] },
  },
  {
    what: "the host's /var is there",
    edits: changed('[...list.slice(0, -2), "--ro-bind", "/var", "/var", ...list.slice(-2)]'),
    named: { attacks: ["read_host_secret", "list_home_directories"] },
  },
  {
    what: "the work directories of all calls are there",
    edits: [
      {
        file: "worker/sandbox/work/work-base.ts",
        from: "passable = 0o711",
        to: "passable = 0o755",
      },
      ...changed(
        '[...list.slice(0, -2), "--bind", `${workDir}/..`, "/sandbox/base", ...list.slice(-2)]',
      ),
    ],
    named: { attacks: ["read_sibling_work_dir"] },
  },
  {
    what: "an isolated tool sees the others",
    edits: [
      {
        file: "worker/runners/visible-tools.ts",
        from: "return isolate && isolates(profile);",
        to: "return isolate && !isolates(profile);",
      },
    ],
    named: { attacks: ["read_other_tools"] },
  },
  {
    what: "the root of the sandbox is writable",
    edits: changed("list.slice(0, -2)"),
    named: { attacks: ["write_shared_mounts"] },
  },
  {
    what: "calls share a directory that they can write to",
    edits: [
      ...changed(
        '[...list.slice(0, -2), "--bind", shared(workDir), "/sandbox/shared", ...list.slice(-2)]',
      ),
      {
        file: coldSandbox,
        from: "export function memoryDirectories(",
        to: `function shared(workDir: string): string {
  const { chmodSync, mkdirSync } = process.getBuiltinModule("node:fs");
  const path = \`\${workDir}/../shared-by-all\`;
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o777);
  return path;
}

export function memoryDirectories(`,
      },
    ],
    named: { attacks: ["leave_files"] },
  },
  {
    what: "the environment of bubblewrap is the worker's",
    edits: [
      {
        file: bwrapProcess,
        from: "      env: {},",
        to: '      env: { STR_ATTACK_TOKEN: "x", ...(process.env as Record<string, string>) },',
      },
    ],
    named: { attacks: ["first_process_environment"] },
  },
  {
    what: "a descriptor of the worker is open in the sandbox",
    edits: [
      {
        file: "worker/sandbox/subprocess.ts",
        from: '...(options.hasChannel ? ["pipe" as const] : []),\n',
        to: '...(options.hasChannel ? ["pipe" as const] : []),\n      "pipe" as const,\n',
      },
    ],
    named: { attacks: ["inherited_descriptors"] },
  },
  {
    what: "sandboxes have no pid namespace",
    edits: allNamespacesBut("pid"),
    named: { attacks: ["share_namespaces"] },
  },
  {
    what: "sandboxes have no ipc namespace",
    edits: allNamespacesBut("ipc"),
    named: { attacks: ["share_namespaces"] },
  },
  {
    what: "sandboxes have no uts namespace",
    edits: [
      { file: argv, from: "...(options.namesHost ? hostName : []),", to: "" },
      ...allNamespacesBut("uts"),
    ],
    named: { attacks: ["share_namespaces"] },
  },
  {
    what: "sandboxes have no cgroup namespace",
    edits: allNamespacesBut("cgroup"),
    named: { attacks: ["share_namespaces"] },
  },
  {
    what: "sandboxes without a network have the host's",
    edits: allNamespacesBut("net"),
    named: { attacks: ["reach_loopback_service", "reach_abstract_socket", "take_channel"] },
  },
  {
    what: "/proc is the host's",
    edits: [{ file: argv, from: '["--proc", "/proc"]', to: '["--ro-bind", "/proc", "/proc"]' }],
    named: { refusal: "proc is missing" },
  },
  {
    what: "/proc is the host's in sandboxes of tools",
    edits: changed('list.flatMap((one) => one === "--proc" ? ["--ro-bind", "/proc"] : [one])'),
    named: { attacks: ["list_host_processes", "worker_environment"] },
  },
  {
    what: "/proc is writable",
    edits: [
      {
        file: argv,
        from: '...(templateDir === undefined ? ["--remount-ro", "/proc"] : []),',
        to: "",
      },
    ],
    named: { attacks: ["kernel_settings"] },
  },
  {
    what: "the sandbox keeps capabilities",
    edits: [{ file: argv, from: '["--cap-drop", "ALL"]', to: '["--cap-add", "ALL"]' }],
    named: { attacks: ["capabilities", "become_root"] },
  },
  {
    what: "user namespaces are refused by the filter only",
    edits: [
      {
        file: argv,
        from: 'templateDir === undefined ? ["--disable-userns"]',
        to: 'templateDir === "" ? ["--disable-userns"]',
      },
    ],
    named: { finding: "by the filter of system calls alone" },
  },
  {
    what: "sandboxes have no filter of system calls",
    edits: [
      {
        file: bwrapProcess,
        from: "    const { seccomp } = command;",
        to: "    const seccomp: Uint8Array | undefined = undefined;",
      },
    ],
    named: { refusal: "seccomp is missing" },
  },
  {
    what: "sandboxes of tools have no filter of system calls",
    edits: [
      {
        file: coldSandbox,
        from: "seccomp: isTemplate ? templateFilter(profile, launch) : toolFilter(host, profile, launch),",
        to: "seccomp: undefined,",
      },
    ],
    named: { attacks: ["system_calls", "io_uring", "socket_families", "watch_shared_files"] },
  },
  {
    what: "a template has no filter of system calls",
    edits: [
      {
        file: coldSandbox,
        from: "seccomp: isTemplate ? templateFilter(profile, launch) : toolFilter(host, profile, launch),",
        to: "seccomp: isTemplate ? undefined : toolFilter(host, profile, launch),",
      },
    ],
    named: { attacks: ["io_uring", "socket_families"], start: "import" },
  },
  {
    what: "tools see when others use shared files",
    edits: [
      {
        file: inspections,
        from: "watchingCommands = [1024, 1026, 1040]",
        to: "watchingCommands = [9999]",
      },
    ],
    named: { attacks: ["watch_shared_files"] },
  },
  {
    what: "tools open sockets of every family",
    edits: [
      {
        file: inspections,
        from: "    ...allowFamilies(),\n",
        to: "    giveBack(actions.allow),\n",
      },
    ],
    named: { attacks: ["socket_families"] },
  },
  ...(
    [
      ["core dumps", noRlimit("core", "0")],
      ["message queues", noRlimit("msgqueue", "0")],
      ["queued signals", noRlimit("sigpending", "1024")],
      ["locked memory", noRlimit("memlock", "64 * 1024")],
    ] as const
  ).map(([limit, edits]) => ({
    what: `there is no limit of ${limit}`,
    edits,
    named: { attacks: ["inherited_limits"] },
  })),
  {
    what: "the limit of open files is set nowhere",
    edits: [
      {
        file: rlimits,
        from: "const own = names.map((name) => {",
        to: 'const own = names.filter((one) => one !== "openFiles").map((name) => {',
      },
    ],
    named: { refusal: "rlimits is missing" },
  },
  {
    what: "there is no limit of open files",
    edits: unlimited("openFiles", "kernel"),
    named: { attacks: ["open_many_files"] },
  },
  {
    what: "there is no limit of the size of a file",
    edits: unlimited("fileSizeBytes", "kernel"),
    named: { attacks: ["large_file"] },
  },
  {
    what: "there is no limit of processes",
    edits: [...unlimited("processes", "kernel"), ...unlimited("processes", "totals")],
    named: { attacks: ["fork_bomb"] },
  },
  {
    what: "nobody counts the memory of all processes",
    edits: unlimited("memoryBytes", "totals"),
    named: { attacks: ["memory_over_processes"] },
  },
  {
    what: "nobody counts the processor time of all processes",
    edits: unlimited("cpuSeconds", "totals"),
    named: { attacks: ["cpu_over_processes"] },
  },
  {
    what: "nobody counts bytes on the disk",
    edits: unlimited("diskBytes", "totals"),
    named: { attacks: ["disk_in_files"] },
  },
  {
    what: "nobody counts files",
    edits: unlimited("files", "totals"),
    named: { attacks: ["many_files_on_disk"] },
  },
  {
    what: "tmpfs has no size",
    edits: changed('list.filter((one, index) => one !== "--size" && list[index - 1] !== "--size")'),
    named: { attacks: ["temporary_files"] },
  },
  {
    what: "sandboxes have every processor",
    edits: [
      {
        file: coldSandbox,
        from: "placement: placement(limits, cpuIds, this.#turn),",
        to: "placement: placement(limits, [], this.#turn),",
      },
    ],
    named: { attacks: ["cpu_placement"] },
  },
  {
    what: "what goes on after its call is not ended",
    edits: [
      {
        file: argv,
        from: '    "--die-with-parent",\n    ...(options.namesHost',
        to: "    ...(options.namesHost",
      },
      {
        file: bwrapExecution,
        from: "if (first !== undefined) await awaitEnd(first, this.#clock, this.#isEnding);",
        to: "if (first === 0) await awaitEnd(first, this.#clock, this.#isEnding);",
      },
      {
        // Or what is left is killed with the control group, at some time after the answer.
        file: "worker/sandbox/cgroup/group.ts",
        from: "    kill(files, group);\n    await clock.sleep",
        to: "    await clock.sleep",
      },
    ],
    named: { attacks: ["leave_processes"] },
  },
  {
    what: "what goes on after its time limit is not killed",
    edits: [
      {
        file: "worker/sandbox/stopping.ts",
        from: "    this.#command.kill();",
        to: "    if (graceMs === 0) this.#command.kill();",
      },
    ],
    named: { attacks: ["ignore_end"] },
  },
  {
    what: "statuses have no bound",
    edits: [
      {
        file: "worker/sandbox/work/status-channel.ts",
        from: "return this.#readBytes > this.#maxBytes;",
        to: "return this.#readBytes < 0;",
      },
    ],
    named: { attacks: ["status_flood"] },
  },
  {
    what: "the worker follows links that tools leave",
    edits: [
      {
        file: "worker/support/files/below.ts",
        from: "constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK",
        to: "constants.O_RDONLY | constants.O_NONBLOCK",
      },
    ],
    named: { attacks: ["output_link"] },
  },
  {
    what: "results have no bound",
    edits: [
      {
        file: "worker/invocation/steps/result.ts",
        from: "if (file.sizeBytes > maxMessageBytes) {",
        to: "if (file.sizeBytes > 2 ** 30) {",
      },
    ],
    named: { attacks: ["result_oversized"] },
  },
  ...templateWeaknesses,
  ...egressWeaknesses,
  ...gatewayWeaknesses,
];
