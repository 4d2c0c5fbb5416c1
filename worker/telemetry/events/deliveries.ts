/**
 * Log events: what becomes of deliveries, answers and what calls leave behind.
 */
import type { LogEvent } from "./event.ts";

/** What becomes of deliveries, answers and what calls leave behind, by name. */
export const deliveryEvents = {
  "message.reply_to_missing": {
    level: "warn",
    message: "message without a usable replyTo was dropped",
    fields: ["topic"],
    meaning: "no answer is possible",
  },
  "call.redelivered_while_running": {
    level: "info",
    message: "call was delivered again while it runs",
    fields: ["topic", "deliveryCount"],
    meaning:
      "redelivered after a lost connection, or through overlapping subscriptions; it runs once; `topic`, `deliveryCount`",
  },
  "group.conflict": {
    level: "error",
    message: "another worker makes calls run twice",
    fields: ["conflict"],
    meaning:
      "another group has a [tool of this one](brokers.md#queues), or a worker of this group has another [artifact store](configuration.md#claims); `conflict` names it; once, until it ends",
  },
  "group.watch_failed": {
    level: "warn",
    message: "other workers cannot be watched",
    fields: ["err"],
    meaning:
      "the broker refuses [announcements](protocol.md#announcements), or the artifact store is away; retried every 30 seconds",
  },
  "call.answered_elsewhere": {
    level: "info",
    message: "call was answered by another worker",
    fields: ["topic", "deliveryCount"],
    meaning: "it was redelivered here, and is settled; `deliveryCount`",
  },
  "call.kept_answer_sent": {
    level: "info",
    message: "call gets the answer that another worker kept",
    fields: ["topic", "deliveryCount"],
    meaning:
      "that worker lost the broker, or the agent sent the same call twice; `topic`, `deliveryCount`",
  },
  "call.redelivered_after_answer": {
    level: "info",
    message: "call was delivered again after its answer",
    fields: ["topic", "deliveryCount"],
    meaning:
      "the [answer](brokers.md#what-calls-can-rely-on) is resent, unless the broker redelivered the call and has confirmed it; `topic`, `deliveryCount`",
  },
  "outputs.left_out": {
    level: "warn",
    message: "outputs that are not regular files were left out",
    fields: ["count", "names"],
    meaning: "`names`",
  },
  "outputs.not_deleted": {
    level: "error",
    message: "outputs of a failed call stay in the store",
    fields: ["err", "count", "versions"],
    meaning:
      "the store [could not delete them](#outputs-of-calls-that-fail); `versions` names them, `err` says why",
  },
  "status.publish_failed": {
    level: "debug",
    message: "status could not be published",
    fields: ["err"],
    meaning: "`err` says why",
  },
  "broker.message_refused": {
    level: "warn",
    message: "broker refuses a message",
    fields: ["err", "topic", "bytes"],
    meaning:
      "a queue is full, or too many messages wait; an answer is retried for a minute and a half; `topic`, `bytes`",
  },
  "answer.publish_failed": {
    level: "error",
    message: "answer could not be published",
    fields: ["err", "topic", "bytes"],
    meaning:
      "the broker refused it for good, or for a minute and a half: then the call is requeued; without redelivery the caller times out; `topic`, `bytes`",
  },
  "answer.unroutable": {
    level: "warn",
    message: "nobody was there for an answer",
    fields: ["topic", "unroutable"],
    meaning:
      "the agent's queue is gone, and the call is settled; `topic`; `unroutable` counts such answers since the start",
  },
  "delivery.settle_failed": {
    level: "warn",
    message: "delivery could not be settled",
    fields: ["err", "topic", "outcome"],
    meaning: "`outcome` is the settlement that failed; `err` says why",
  },
  "mark.write_failed": {
    level: "warn",
    message: "mark of a call could not be kept",
    fields: ["err"],
    meaning: "check the artifact store: another worker may run the call again",
  },
  "mark.read_failed": {
    level: "warn",
    message: "marks of a call could not be read",
    fields: ["err"],
    meaning: "check the artifact store; the call counts as one that may have started",
  },
  "work_directory.remove_failed": {
    level: "warn",
    message: "work directory could not be removed",
    fields: ["err"],
    meaning: "check the disk",
  },
  "compiled_code.remove_failed": {
    level: "warn",
    message: "compiled code could not be removed",
    fields: ["err"],
    meaning: "check the disk; a module's former cache",
  },
  "sandbox.guard_lost": {
    level: "warn",
    message: "guard of sandboxes lost",
    fields: ["err"],
    meaning:
      "the process that kills the sandboxes of a killed worker ended or cannot be started; `err` says which; another one is started",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
