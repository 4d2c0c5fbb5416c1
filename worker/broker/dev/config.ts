/**
 * What an operator says of a DevBroker.
 */

export interface DevConfig {
  readonly host: string;
  readonly port: number;
}
