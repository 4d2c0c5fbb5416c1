/**
 * A template: a sandbox in which a tool was loaded once, and from which sandboxes for calls are
 * forked.
 *
 * See docs/adr/0023-children-of-a-template.md for what keeps those apart.
 */
import { basename } from "node:path";
import type { Limits } from "../../../protocol/resource-limits.ts";
import type { NewId } from "../../../support/ids.ts";
import { settlesWithin } from "../../../support/within.ts";
import { knownChildrenOf, signalQuietly } from "../../proc/processes.ts";
import { clampLimits, cpusFor } from "../../rlimits.ts";
import {
  type Launch,
  type ParkedSandbox,
  SandboxError,
  type SandboxRequest,
  type Template,
} from "../../sandbox.ts";
import { SandboxUsage } from "../../accounting/sandbox-usage.ts";
import type { WorkDir } from "../../work/work-dir.ts";
import type { WorkDirParent, WorkDirs } from "../../work/work-dirs.ts";
import {
  type ColdSandbox,
  type ColdSandboxFacts,
  type ColdSandboxParts,
  type WaitingCommand,
  usageOptions,
} from "../cold-sandbox.ts";
import { BubblewrapParked } from "../parked-sandbox.ts";
import { privateBytesOf } from "../private-bytes.ts";
import { BwrapExecution } from "../process.ts";
import { awaitReady } from "../probe/readiness.ts";
import { TemplateChannel } from "./template-channel.ts";
import { ChildSandbox, TemplateChild } from "./template-child.ts";
import { TemplateListener } from "./template-listener.ts";
import { firstOfNamespace } from "./template-pids.ts";
import { templateSettings } from "./template-settings.ts";

/**
 * Milliseconds that a child may take until it has connected: some 5 on a machine that is not busy.
 */
const connectTimeoutMs = 10_000;

/** What templates are made with. */
export interface TemplateParts {
  readonly sandboxes: ColdSandboxParts;
  readonly facts: ColdSandboxFacts;
  readonly workDirs: WorkDirs;
  readonly newId: NewId;
  /** Makes a sandbox that the caller owns. */
  make(request: SandboxRequest): Promise<ColdSandbox>;
  /** Counts sandboxes, so that those bound to fewer CPUs than there are spread over them. */
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
  const settings = templateSettings(request, clampedLimits(parts, request), host);
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
  const place = { directory, listener, pid };
  return new OpenTemplate(parts, request, command, place, privateBytes, held.move());
}

function clampedLimits({ sandboxes }: TemplateParts, { profile }: SandboxRequest): Limits {
  return clampLimits(profile.limits, sandboxes.host.hardLimits);
}

/** The one child of its sandbox's first process. */
function processOf({ execution }: WaitingCommand): number {
  const [pid] = execution.firstPid === undefined ? [] : knownChildrenOf(execution.firstPid);
  if (pid === undefined) throw new SandboxError("the process of a template cannot be found");
  return pid;
}

/** Where a template finds its children, and they find the worker. */
interface TemplatePlace {
  readonly directory: WorkDirParent;
  readonly listener: TemplateListener;
  /** The template's process, as this host numbers it. */
  readonly pid: number;
}

interface EnteredChild {
  readonly child: TemplateChild;
  readonly execution: BwrapExecution;
}

class OpenTemplate implements Template {
  readonly lost: Promise<void>;
  readonly privateBytes: number;
  readonly #parts: TemplateParts;
  readonly #request: SandboxRequest;
  readonly #channel: TemplateChannel;
  readonly #place: TemplatePlace;
  readonly #owned: AsyncDisposable;
  #childBytes: number | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #ended = new AbortController();

  constructor(
    parts: TemplateParts,
    request: SandboxRequest,
    { execution }: WaitingCommand,
    place: TemplatePlace,
    privateBytes: number,
    owned: AsyncDisposable,
  ) {
    if (execution.channel === undefined) throw new Error("a template has no channel");
    this.#parts = parts;
    this.#request = request;
    this.#channel = new TemplateChannel(execution.channel, parts.sandboxes.clock);
    this.#place = place;
    this.privateBytes = privateBytes;
    this.#owned = owned;
    const end = (): void => this.#ended.abort(new SandboxError("a template has ended"));
    this.lost = execution.exited.then(end, end);
  }

  async park(signal: AbortSignal): Promise<ParkedSandbox> {
    const either = AbortSignal.any([signal, this.#ended.signal]);
    either.throwIfAborted();
    await using held = new AsyncDisposableStack();
    const sandbox = held.use(await this.#begin(either));
    const { command } = sandbox;
    await awaitReady(command, this.#parts.sandboxes.clock, either);
    // The next ones have as much: it is what every child of this template touches.
    this.#childBytes ??= await privateBytesOf(command.execution.pid);
    const parked = new BubblewrapParked(sandbox, command, this.#childBytes);
    held.move();
    return parked;
  }

  async #begin(signal: AbortSignal): Promise<ChildSandbox> {
    const { workDirs, facts } = this.#parts;
    await using held = new AsyncDisposableStack();
    const workDir = held.use(await workDirs.take(this.#place.directory));
    // One after the other: until a child is in a control group of its own it counts with the
    // template.
    const entered = this.#turn.then(() => this.#make(workDir, signal));
    this.#turn = entered.catch(() => undefined);
    const { child, execution } = await entered;
    held.move();
    child.letGo();
    return new ChildSandbox(facts, this.#limits, workDir, execution);
  }

  /** A child whose limits are kept, and which waits to be let go. */
  async #make(workDir: WorkDir, signal: AbortSignal): Promise<EnteredChild> {
    signal.throwIfAborted();
    const child = await this.#fork(basename(workDir.path), signal);
    try {
      return { child, execution: await this.#enter(child, workDir) };
    } catch (error) {
      child.kill("SIGKILL");
      child.close();
      throw error;
    }
  }

  /** Has a child made, which connects and waits. */
  async #fork(directory: string, signal: AbortSignal): Promise<TemplateChild> {
    const { newId, nextTurn, sandboxes } = this.#parts;
    const word = newId();
    using expected = this.#place.listener.expect(word);
    const cpus = cpusFor(this.#limits, sandboxes.host.cpuIds, nextTurn());
    const innerPid = await this.#channel.fork({ word, directory, cpus }, signal);
    const firstPid = firstOfNamespace(this.#place.pid, innerPid);
    if (firstPid === undefined) throw new SandboxError("a child of a template cannot be found");
    const { connected } = expected;
    if (await settlesWithin(connected, connectTimeoutMs, sandboxes.clock, signal))
      return new TemplateChild(expected.take(), firstPid);
    signalQuietly(firstPid, "SIGKILL");
    signal.throwIfAborted();
    throw new SandboxError("a child of a template does not connect");
  }

  /** Has the limits of the child kept. */
  async #enter(child: TemplateChild, workDir: WorkDir): Promise<BwrapExecution> {
    const { monitor, cgroups, clock } = this.#parts.sandboxes;
    const usage = await SandboxUsage.open(monitor, cgroups, {
      limits: this.#limits,
      ...usageOptions(this.#request, workDir.path),
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

  get #limits(): Limits {
    return clampedLimits(this.#parts, this.#request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }
}
