/**
 * A template: a sandbox that has loaded a tool, and from which sandboxes for calls are forked.
 * docs/adr/0023-children-of-a-template.md says what isolates them.
 */
import { statSync } from "node:fs";
import { basename } from "node:path";
import type { Limits } from "../../../protocol/resource-limits.ts";
import type { NewId } from "../../../support/ids.ts";
import { Semaphore } from "../../../support/semaphore.ts";
import { abortable } from "../../../support/timeout.ts";
import { knownChildrenOf, signalQuietly } from "../../proc/processes.ts";
import { readStat } from "../../proc/stat.ts";
import { clampLimits, cpusFor } from "../../rlimits.ts";
import {
  type Launch,
  type ParkedSandbox,
  SandboxError,
  type SandboxRequest,
  type Template,
} from "../../sandbox.ts";
import { type HeldSandbox, openNetwork } from "../../network/door.ts";
import type { OpenNetwork } from "../../network/sockets.ts";
import { SandboxUsage } from "../../accounting/sandbox-usage.ts";
import type { WorkDir } from "../../work/work-dir.ts";
import type { WorkDirParent, WorkDirs } from "../../work/work-dirs.ts";
import { awaitReady } from "../idle/await-ready.ts";
import {
  type ColdSandbox,
  type ColdSandboxFacts,
  type ColdSandboxParts,
  type WaitingCommand,
  usageOptions,
  waiting,
} from "../cold-sandbox.ts";
import { parkedSandbox } from "../idle/parked-sandbox.ts";
import { privateBytesOf } from "../idle/private-bytes.ts";
import { BwrapExecution } from "../execution.ts";
import { TemplateChannel } from "./template-channel.ts";
import { TemplateChild } from "./template-child.ts";
import { TemplateListener, maxArriving } from "./template-listener.ts";
import { firstOfNamespace } from "./template-pids.ts";
import { templateSettings } from "./template-settings.ts";

/** What templates are made with. */
export interface TemplateParts {
  readonly sandboxes: ColdSandboxParts;
  readonly facts: ColdSandboxFacts;
  readonly workDirs: WorkDirs;
  readonly newId: NewId;
  /** Makes a sandbox; the caller owns it. */
  make(request: SandboxRequest): Promise<ColdSandbox>;
  /** Counts sandboxes, to spread them over the CPUs. */
  nextTurn(): number;
}

/** See {@link AheadOfCalls.openTemplate}. */
export async function openTemplate(
  parts: TemplateParts,
  request: SandboxRequest,
  launch: Launch,
  signal: AbortSignal,
): Promise<Template> {
  signal.throwIfAborted();
  const { host, uid, clock } = parts.sandboxes;
  const limits = clampLimits(request.profile.limits, host.hardLimits);
  const settings = templateSettings(request, limits, host);
  await using held = new AsyncDisposableStack();
  const directory = held.use(await parts.workDirs.openParent());
  const listener = held.use(await TemplateListener.open(directory.path, uid));
  const sandbox = held.use(await parts.make(request));
  const command = await sandbox.startTemplate(launch, directory.path);
  held.use(command.channel);
  command.execution.channel?.write(`${settings}\n`);
  await awaitReady(command, clock, signal);
  command.execution.unwatch();
  const pid = processOf(command);
  const privateBytes = await privateBytesOf(pid);
  const opened = { request, limits, command, directory, listener, pid, privateBytes };
  return new OpenTemplate(parts, opened, held.move());
}

/** The one child of its sandbox's first process. */
function processOf({ execution }: WaitingCommand): number {
  const [pid] = execution.firstPid === undefined ? [] : knownChildrenOf(execution.firstPid);
  if (pid === undefined) throw new SandboxError("the process of a template cannot be found");
  return pid;
}

/** A child that waits: it holds its number until it is waited for. */
function heldSandbox(pid: number): HeldSandbox {
  const namespace = statSync(`/proc/${pid}/ns/net`).ino;
  return { pid, namespace, raisesLoopback: true };
}

interface Opened {
  readonly request: SandboxRequest;
  readonly limits: Limits;
  readonly command: WaitingCommand;
  /** Parent of the children's work directories. */
  readonly directory: WorkDirParent;
  readonly listener: TemplateListener;
  /** The template's process, as this host numbers it. */
  readonly pid: number;
  readonly privateBytes: number;
}

interface MadeChild {
  readonly execution: BwrapExecution;
  readonly network: OpenNetwork | undefined;
}

class OpenTemplate implements Template {
  readonly lost: Promise<void>;
  readonly #parts: TemplateParts;
  readonly #opened: Opened;
  readonly #channel: TemplateChannel;
  readonly #owned: AsyncDisposable;
  readonly #ended = new AbortController();
  #childBytes: number | undefined;
  /** Until a child has its own control group, it counts with the template. */
  readonly #orders: Semaphore;
  /** The end of each child. */
  readonly #children = new Set<Promise<void>>();

  constructor(parts: TemplateParts, opened: Opened, owned: AsyncDisposable) {
    const { execution } = opened.command;
    if (execution.channel === undefined) throw new Error("a template has no channel");
    this.#parts = parts;
    this.#opened = opened;
    this.#channel = new TemplateChannel(execution.channel);
    this.#owned = owned;
    const room = opened.limits.processes - (readStat(`/proc/${opened.pid}`)?.threads ?? 1);
    const capacity = Math.max(1, Math.min(maxArriving, room));
    // Whoever makes sandboxes bounds their number.
    this.#orders = new Semaphore({ capacity, maxWaiting: Infinity });
    const end = (): void => this.#ended.abort(new SandboxError("a template has ended"));
    this.lost = execution.exited.then(end, end);
  }

  get privateBytes(): number {
    return this.#opened.privateBytes;
  }

  async park(signal: AbortSignal): Promise<ParkedSandbox> {
    const either = AbortSignal.any([signal, this.#ended.signal]);
    either.throwIfAborted();
    const { workDirs, facts, sandboxes } = this.#parts;
    const { directory, limits } = this.#opened;
    await using held = new AsyncDisposableStack();
    held.use(this.#begin());
    const workDir = held.use(await workDirs.take({ parent: directory }));
    const { execution, network } = await this.#makeInTurn(workDir, held, either);
    held.defer(async () => void (await execution.stop(0)));
    const command = waiting(execution);
    await awaitReady(command, sandboxes.clock, either);
    // Every child of this template touches the same pages.
    this.#childBytes ??= await privateBytesOf(execution.pid);
    const privateBytes = this.#childBytes;
    const { usage: networkUsage, connections } = network ?? {};
    const sandbox = { ...facts, workDir, limits, networkUsage, connections };
    return parkedSandbox({ sandbox, command, privateBytes, owned: held.move() });
  }

  async #makeInTurn(
    workDir: WorkDir,
    held: AsyncDisposableStack,
    signal: AbortSignal,
  ): Promise<MadeChild> {
    using _order = await this.#orders.acquire(signal);
    return await this.#make(workDir, held, signal);
  }

  /** A child within its limits, on its way to be ready; its network is given to `held`. */
  async #make(
    workDir: WorkDir,
    held: AsyncDisposableStack,
    signal: AbortSignal,
  ): Promise<MadeChild> {
    const child = await this.#fork(basename(workDir.path), signal);
    try {
      const execution = await this.#enter(child, workDir);
      const { network: wanted } = this.#opened.request;
      const { door } = this.#parts.sandboxes;
      const network = wanted && (await openNetwork(wanted, door, heldSandbox(child.pid), signal));
      if (network !== undefined) held.use(network);
      child.letGo();
      return { execution, network };
    } catch (error) {
      child.kill("SIGKILL");
      child.close();
      throw error;
    }
  }

  /** A child that has connected and waits. */
  async #fork(directory: string, signal: AbortSignal): Promise<TemplateChild> {
    const { newId, nextTurn, sandboxes } = this.#parts;
    const { limits, listener, pid, request } = this.#opened;
    const word = newId();
    using expected = listener.expect(word, request.hasGateway ?? false);
    const cpus = cpusFor(limits, sandboxes.host.cpuIds, nextTurn());
    const innerPid = await this.#channel.fork({ word, directory, cpus }, signal);
    const firstPid = firstOfNamespace(pid, innerPid);
    if (firstPid === undefined) throw new SandboxError("a child of a template cannot be found");
    try {
      await abortable(expected.connected, signal);
    } catch (error) {
      signalQuietly(firstPid, "SIGKILL");
      throw error;
    }
    return new TemplateChild(expected.take(), firstPid);
  }

  /** Enforces the limits of the child. */
  async #enter(child: TemplateChild, workDir: WorkDir): Promise<BwrapExecution> {
    const { monitor, cgroups, clock } = this.#parts.sandboxes;
    const { limits, request } = this.#opened;
    const usage = await SandboxUsage.open(monitor, cgroups, {
      limits,
      ...usageOptions(request, workDir.path),
      isForked: true,
    });
    try {
      await usage.enter(child.pid);
    } catch (error) {
      usage[Symbol.dispose]();
      throw error;
    }
    return new BwrapExecution(child, child.report, clock, usage);
  }

  /** A child that needs the template until the answer is disposed. */
  #begin(): Disposable {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#children.add(promise);
    return {
      [Symbol.dispose]: () => {
        this.#children.delete(promise);
        resolve();
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children);
    await this.#owned[Symbol.asyncDispose]();
  }
}
