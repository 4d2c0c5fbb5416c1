/**
 * Log events of deliveries, answers and the traces of calls.
 */
import type { LogEvent } from "./event.ts";

const checkDisk = "Check the disk by `err`.";

/** Events of deliveries, answers and the traces of calls, by name. */
export const deliveryEvents = {
  "message.reply_to_missing": {
    level: "warn",
    message: "message without a usable replyTo was dropped",
    facts: { topic: "text" },
    when: "No answer is possible.",
    action: "Correct the client that publishes to `topic`.",
  },
  "call.redelivered_while_running": {
    level: "info",
    message: "call was delivered again while it runs",
    facts: { topic: "text", deliveryCount: "number" },
    when: "The broker redelivered the call after a lost connection, or through overlapping subscriptions. It runs once.",
  },
  "group.conflict": {
    level: "error",
    message: "another worker makes calls run twice",
    facts: { conflict: "text" },
    when: "Another group has a [tool of this one](brokers.md#queues), or a worker of this group has another [artifact store](configuration.md#claims). Once, until the conflict ends.",
    action: "Align the groups' manifests or the stores that `conflict` names.",
  },
  "group.watch_failed": {
    level: "warn",
    message: "other workers cannot be watched",
    facts: { err: "error" },
    when: "The broker refuses [announcements](protocol.md#announcements), or the artifact store fails. The worker retries every 30 seconds.",
    action: "Give the user access to the topic of announcements, or repair the store.",
  },
  "call.answered_elsewhere": {
    level: "info",
    message: "call was answered by another worker",
    facts: { topic: "text", deliveryCount: "number" },
    when: "The broker redelivered the call; the worker settles it.",
  },
  "call.kept_answer_sent": {
    level: "info",
    message: "call gets the answer that another worker kept",
    facts: { topic: "text", deliveryCount: "number" },
    when: "That worker lost the broker, or the agent sent the same call twice.",
  },
  "call.redelivered_after_answer": {
    level: "info",
    message: "call was delivered again after its answer",
    facts: { topic: "text", deliveryCount: "number" },
    when: "The worker resends the [answer](brokers.md#what-calls-can-rely-on), unless the broker redelivered the call and has confirmed the answer.",
  },
  "outputs.left_out": {
    level: "warn",
    message: "outputs that are not regular files were left out",
    facts: { count: "number", names: "list" },
    when: "The tool left links, directories or special files among its outputs.",
    action: "Correct the tool.",
  },
  "outputs.not_deleted": {
    level: "error",
    message: "outputs of a failed call stay in the store",
    facts: { err: "error", count: "number", versions: "list" },
    when: "The store could not delete `versions`.",
    action:
      "Delete them [by hand](operate.md#outputs-of-calls-that-fail), before another client saves the next.",
  },
  "status.publish_failed": {
    level: "debug",
    message: "status could not be published",
    facts: { err: "error" },
    when: "The broker refused a status.",
  },
  "broker.message_refused": {
    level: "warn",
    message: "broker refuses a message",
    facts: { err: "error", topic: "text", bytes: "number" },
    when: "A queue is full, or too many messages wait. The worker retries an answer for a minute and a half.",
    action: "Raise the limit that `err` names, or empty the queue.",
  },
  "answer.publish_failed": {
    level: "error",
    message: "answer could not be published",
    facts: { id: "text", err: "error", topic: "text", bytes: "number" },
    when: "The broker refused the answer for good, or for a minute and a half: then the worker requeues the call. Without redelivery the caller times out.",
    action: "Check the worker's permission for `topic` and the limits of the agent's queue.",
  },
  "answer.unroutable": {
    level: "warn",
    message: "answer had no receiver",
    facts: { id: "text", topic: "text", unroutable: "number" },
    when: "The agent's queue is gone; the worker settles the call. `unroutable` counts such answers since the start.",
    action: "If it repeats, check why agents lose their connections.",
  },
  "delivery.settle_failed": {
    level: "warn",
    message: "delivery could not be settled",
    facts: { err: "error", topic: "text", outcome: "text" },
    when: "The settlement `outcome` failed. A broker that redelivers delivers the call again.",
  },
  "mark.write_failed": {
    level: "warn",
    message: "mark of a call could not be kept",
    facts: { err: "error" },
    when: "Another worker may run the call again.",
    action: "Check the artifact store by `err`.",
  },
  "mark.read_failed": {
    level: "warn",
    message: "marks of a call could not be read",
    facts: { err: "error" },
    when: "The worker treats the call as one that may have started.",
    action: "Check the artifact store by `err`.",
  },
  "work_directory.remove_failed": {
    level: "warn",
    message: "work directory could not be removed",
    facts: { err: "error" },
    when: "The files of an ended call stay on disk.",
    action: checkDisk,
  },
  "compiled_code.remove_failed": {
    level: "warn",
    message: "compiled code could not be removed",
    facts: { err: "error" },
    when: "A module's former cache stays on disk.",
    action: checkDisk,
  },
  "sandbox.guard_lost": {
    level: "warn",
    message: "guard of sandboxes lost",
    facts: { err: "error" },
    when: "The process that kills the sandboxes of a killed worker ended or cannot be started. The worker starts another one.",
    action: "If it repeats, check the host's process limits by `err`.",
  },
} as const satisfies Readonly<Record<string, LogEvent>>;
