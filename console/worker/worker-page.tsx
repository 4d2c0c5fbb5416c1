/** The worker: whether it is ready, what it serves, and what its host enforces. */
import type { VNode } from "preact";
import type { WorkerView } from "../../worker/console/api.ts";
import { formatDuration } from "../format/format.ts";
import { useConsole } from "../state/store.ts";
import { useNow } from "../state/use-now.ts";
import { Badge } from "../ui/badge.tsx";
import { Facts } from "../ui/facts.tsx";
import { Notice } from "../ui/notice.tsx";
import { Table } from "../ui/table.tsx";
import { HostChecks } from "./host-checks.tsx";
import { Profiles } from "./profiles.tsx";

export function WorkerPage(): VNode {
  const { view } = useConsole().state;
  return (
    <>
      <h1 tabIndex={-1}>Worker</h1>
      {view !== null && <Parts view={view} />}
    </>
  );
}

function Parts({ view }: { readonly view: WorkerView }): VNode {
  return (
    <div class="stack">
      <Readiness view={view} />
      <Identity view={view} />
      <Manifest view={view} />
      <section class="card stack tight" aria-labelledby="queues-title">
        <h2 id="queues-title">Queues</h2>
        <Table
          caption="Queues and their slots"
          isCaptionHidden
          columns={["Queue", "Calls at once"]}
          numeric={[1]}
          rows={view.queues.map(({ name, slots }) => [<code key={name}>{name}</code>, slots])}
        />
      </section>
      <Profiles profiles={view.profiles} />
      <HostChecks hosts={view.hosts} />
    </div>
  );
}

function Readiness({ view }: { readonly view: WorkerView }): VNode {
  return (
    <section class="card stack tight" aria-labelledby="ready-title">
      <h2 id="ready-title">Readiness</h2>
      <p role="status">
        {view.isReady ? <Badge kind="good">ready</Badge> : <Badge kind="bad">not ready</Badge>}
      </p>
      <Messages kind="problem" texts={view.missing} title="It lacks" />
      <Messages kind="warning" texts={view.warnings} title="Warnings" />
    </section>
  );
}

function Identity({ view }: { readonly view: WorkerView }): VNode {
  const { worker } = view;
  const nowMs = useNow(false);
  return (
    <section class="card stack tight" aria-labelledby="identity-title">
      <h2 id="identity-title">Identity</h2>
      <Facts
        facts={{
          Id: <code>{worker.id}</code>,
          Version: worker.version,
          "Up for": formatDuration(Math.max(nowMs - worker.startedAtMs, 0)),
          Namespace: worker.namespace,
          Group: worker.group,
          Broker: worker.broker,
          Store: worker.store,
          "Output of calls of agents": view.keepsOutput ? "kept" : "not kept",
        }}
      />
    </section>
  );
}

function Manifest({ view }: { readonly view: WorkerView }): VNode {
  const { revision, isUsable, problems, unavailable } = view.manifest;
  return (
    <section class="card stack tight" aria-labelledby="manifest-title">
      <h2 id="manifest-title">Manifest</h2>
      <Facts facts={{ Revision: <code>{revision}</code> }} />
      {!isUsable && (
        <Notice kind="problem">The file is not usable; the last usable one is in force.</Notice>
      )}
      <Messages kind="warning" texts={problems} title="Problems" />
      {unavailable.length > 0 && (
        <Table
          caption="Tools that are not served"
          columns={["Tool", "Reason"]}
          rows={unavailable.map(({ tool, reason }) => [
            <span key="tool" class="name">
              {tool}
            </span>,
            reason,
          ])}
        />
      )}
    </section>
  );
}

function Messages(properties: {
  readonly kind: "problem" | "warning";
  readonly title: string;
  readonly texts: readonly string[];
}): VNode | null {
  const { kind, title, texts } = properties;
  if (texts.length === 0) return null;
  return (
    <Notice kind={kind}>
      <strong>{title}</strong>
      <ul>
        {texts.map((text) => (
          <li key={text} class="lines">
            {text}
          </li>
        ))}
      </ul>
    </Notice>
  );
}
