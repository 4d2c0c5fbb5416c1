/**
 * The environment variables that say which broker to connect to, and how its queues are made.
 */
import { z } from "zod";
import { isAmqpUrl, isSolaceHost } from "../broker/open.ts";
import {
  absolutePath,
  maxCount,
  optional,
  port,
  secret,
  text,
  wholeNumber,
  withDefault,
} from "./variable-kinds.ts";

const maxDelayMs = 3_600_000;
/** A limit that every delivery would reach at once leaves none to answer the call with. */
const minDeliveries = 2;
const maxDeliveries = 1_000;
const maxRuns = 100;
/** RabbitMQ looks once a minute whether the time is over. */
const minConsumerTimeoutSeconds = 60;
const maxConsumerTimeoutSeconds = 1_000_000;

/** In the order of the documentation. */
export const brokerVariables = {
  DEV_BROKER_HOST: optional(
    text.min(1),
    "host name or address of a DevBroker",
    "Host of the DevBroker, for development. Set one of it, `SOLACE_HOST` and `AMQP_URL`.",
  ),
  DEV_BROKER_PORT: withDefault(port, "a port, 1 to 65535", "55555", "Port of the DevBroker."),
  SOLACE_HOST: secret(
    text.refine(isSolaceHost),
    "`host:port`, also with `tcp`, `tcps`, `ws`, `wss`, `smf` or `smfs` and `://` before, or several with `,` between them",
    "The Solace broker. Without a scheme it is TCP, or TLS with port 55443; without a port it is 55555, 55443 with TLS, and 80 or 443 with WebSockets. Also `SOLACE_BROKER_URL`.",
  ),
  SOLACE_VPN: withDefault(
    text.min(1),
    "a name",
    "default",
    "The message VPN. Also `SOLACE_BROKER_VPN`.",
  ),
  SOLACE_USERNAME: optional(
    text.min(1),
    "a user name",
    "Unset: `admin`, or with certificate or token the user that the broker reads from it. Also `SOLACE_BROKER_USERNAME`.",
  ),
  SOLACE_PASSWORD: secret(
    text,
    "the password",
    "Unset: `admin`. Not used with certificate or token. Also `SOLACE_BROKER_PASSWORD`.",
  ),
  SOLACE_OAUTH_TOKEN: secret(
    text.min(1),
    "an access token",
    "Logs in instead of user and password. Needs TLS.",
  ),
  SOLACE_OAUTH_TOKEN_FILE: optional(
    absolutePath,
    "an absolute path",
    "File with the access token in place of `SOLACE_OAUTH_TOKEN`, read for every connection, so that the token can be renewed.",
  ),
  SOLACE_TRUST_STORE_PATH: optional(
    absolutePath,
    "an absolute path",
    "PEM file, or directory with files `*.pem`, `*.crt` or `*.cer`, with the trusted CA certificates. Unset: those of Node.",
  ),
  SOLACE_CLIENT_CERT_PATH: optional(
    absolutePath,
    "an absolute path",
    "PEM file with the worker's own certificate, which logs in instead of user and password. Needs TLS.",
  ),
  SOLACE_CLIENT_KEY_PATH: optional(
    absolutePath,
    "an absolute path",
    "PEM file with the key of `SOLACE_CLIENT_CERT_PATH`, required with it.",
  ),
  SOLACE_CLIENT_KEY_PASSPHRASE: secret(text, "the passphrase", "Opens `SOLACE_CLIENT_KEY_PATH`."),
  SOLACE_STATUS_DELIVERY: withDefault(
    z.enum(["persistent", "direct"]),
    "one of persistent, direct",
    "persistent",
    "Delivery mode of statuses: `persistent` with confirmation, `direct` without, so that some may get lost. Answers are always confirmed.",
  ),
  SOLACE_RECONNECT_RETRIES: withDefault(
    wholeNumber(0, maxCount),
    `a whole number, 0 to ${maxCount}`,
    "0",
    "Connection attempts per outage before the worker ends; 0 is unlimited.",
  ),
  SOLACE_RECONNECT_DELAY_MS: withDefault(
    wholeNumber(1, maxDelayMs),
    `milliseconds, 1 to ${maxDelayMs}`,
    "3000",
    "Longest delay between two connection attempts.",
  ),
  AMQP_URL: secret(
    text.refine(isAmqpUrl),
    "`amqp://user:password@host:port/vhost`, or `amqps`, with up to 16 `host:port` and `,` between them, `%` escapes in user, password and virtual host and no query",
    "The RabbitMQ broker. The worker tries several hosts in order. Without a user it is `guest`, or with `AMQP_CERT_FILE` the certificate's.",
  ),
  AMQP_CA_FILE: optional(
    absolutePath,
    "an absolute path",
    "PEM file with the trusted CA certificates. Unset: those of Node.",
  ),
  AMQP_CERT_FILE: optional(
    absolutePath,
    "an absolute path",
    "PEM file with the worker's own certificate, for brokers that ask for one.",
  ),
  AMQP_KEY_FILE: optional(
    absolutePath,
    "an absolute path",
    "PEM file with the key of `AMQP_CERT_FILE`, required with it.",
  ),
  AMQP_KEY_PASSPHRASE: secret(text, "the passphrase", "Opens `AMQP_KEY_FILE`."),
  AMQP_EXCHANGE: optional(
    text.regex(/^(?!amq\.)[A-Za-z0-9._:/-]{1,200}$/),
    "1 to 200 letters, digits, `.`, `_`, `:`, `/` or `-`, not beginning with `amq.`",
    "Topic exchange that agents and workers share. Unset: named like the namespace.",
  ),
  AMQP_CONSUMER_TIMEOUT_SECONDS: withDefault(
    wholeNumber(minConsumerTimeoutSeconds, maxConsumerTimeoutSeconds),
    `seconds, ${minConsumerTimeoutSeconds} to ${maxConsumerTimeoutSeconds}`,
    "1800",
    "`consumer_timeout` of the broker. The worker does not serve tools that need more: twice their time limit and two minutes.",
  ),
  BROKER_MAX_DELIVERIES: withDefault(
    wholeNumber(minDeliveries, maxDeliveries),
    `a whole number, ${minDeliveries} to ${maxDeliveries}`,
    "50",
    "Deliveries of a call, to all workers together, before the broker dead-letters it.",
  ),
  BROKER_MAX_RUNS: withDefault(
    wholeNumber(1, maxRuns),
    `a whole number, 1 to ${maxRuns}`,
    "4",
    "Runs of a call that may end their worker before the call is answered `POISONED`.",
  ),
  CONNECT_RETRIES: withDefault(
    wholeNumber(0, maxCount),
    `a whole number, 0 to ${maxCount}`,
    "0",
    "Connection attempts per outage before the worker ends; 0 is unlimited. For a DevBroker and RabbitMQ.",
  ),
  CONNECT_RETRY_DELAY_MS: withDefault(
    wholeNumber(1, maxDelayMs),
    `milliseconds, 1 to ${maxDelayMs}`,
    "3000",
    "Longest delay between two connection attempts. For a DevBroker and RabbitMQ.",
  ),
};

/** Their values. */
export type BrokerValues = z.infer<z.ZodObject<typeof brokerVariables>>;
