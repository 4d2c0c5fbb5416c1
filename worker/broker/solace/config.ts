/**
 * What an operator says of a Solace broker.
 */

/** Whether the broker confirms statuses; direct ones are faster, and a busy broker drops some. */
export type StatusDelivery = "persistent" | "direct";

/** Files in PEM form, read anew for every connection. */
export interface SolaceTlsFiles {
  /** File or directory; undefined for the certificate authorities of Node. */
  readonly trustStorePath: string | undefined;
  /** The worker's own certificate, as its login. */
  readonly clientCertPath: string | undefined;
  readonly clientKeyPath: string | undefined;
  readonly clientKeyPassphrase: string | undefined;
}

export interface SolaceConfig {
  readonly host: string;
  readonly vpn: string;
  /** Undefined for the user of the certificate or the token; without these, `admin`. */
  readonly username: string | undefined;
  /** Undefined for `admin`. Used without certificate and token only. */
  readonly password: string | undefined;
  /** OAuth access token, as its login. */
  readonly oauthToken: string | undefined;
  /** File with such a token, read anew for every connection. */
  readonly oauthTokenFile: string | undefined;
  readonly tls: SolaceTlsFiles;
  readonly statusDelivery: StatusDelivery;
  /** Deliveries of a call before the broker dead-letters it, for queues that the worker makes. */
  readonly maxDeliveries: number;
}
