/**
 * What a queue is set to.
 */
import { type Field, type Fields, numberField } from "./fields.ts";
import { assuredField } from "./assured-control.ts";

/** Settings of a queue. */
export interface QueueProperties {
  /** Whether one consumer gets everything while it is there, or all share. */
  readonly accessType: "exclusive" | "non-exclusive";
  /** The user who may do everything; undefined for a queue that no client made. */
  readonly owner: string | undefined;
  /** What all other users may do. */
  readonly permission: Permission;
  readonly quotaMb: number;
  /** The largest frame that the queue takes. */
  readonly maxMessageBytes: number;
  /** How often a message is handed out again; 0 for as often as it takes. */
  readonly maxRedeliveries: number;
  readonly respectsTimeToLive: boolean;
  /** Messages that one consumer may hold without having settled them. */
  readonly maxUnsettledPerFlow: number;
  readonly maxFlows: number;
  /**
   * Whether consumers hear how often they were handed a message; queues of real brokers do not
   * unless told.
   */
  readonly countsDeliveries: boolean;
}

/** Each includes those before it. */
const permissions = {
  none: 0b0000,
  "read-only": 0b0001,
  consume: 0b0011,
  "modify-topic": 0b0111,
  delete: 0b1111,
} as const;

export type Permission = keyof typeof permissions;

const accessTypes = { exclusive: 1, "non-exclusive": 2 } as const;
const durable = 1;
/** A consumer hears how often it was handed a message. */
const reportsDeliveryCount = 0x0800;

/** Of a queue that nobody set anything of; the largest message is that of real brokers. */
export const defaultProperties: QueueProperties = {
  accessType: "exclusive",
  owner: undefined,
  permission: "delete",
  quotaMb: 1_000,
  maxMessageBytes: 10_000_000,
  maxRedeliveries: 0,
  respectsTimeToLive: false,
  maxUnsettledPerFlow: 10_000,
  maxFlows: 1_000,
  countsDeliveries: true,
};

/** What a client asks for when it makes a queue. */
export function readProperties(fields: Fields, owner: string): QueueProperties {
  const accessType = fields.number(assuredField.accessType, 1);
  const granted = fields.number(assuredField.permissions, 4) ?? permissions.none;
  return {
    ...defaultProperties,
    accessType: accessType === accessTypes["non-exclusive"] ? "non-exclusive" : "exclusive",
    owner,
    permission: permissionOf(granted),
    quotaMb: fields.number(assuredField.quotaMb, 4) ?? defaultProperties.quotaMb,
    maxMessageBytes:
      fields.number(assuredField.maxMessageBytes, 4) ?? defaultProperties.maxMessageBytes,
    maxRedeliveries: fields.number(assuredField.maxRedeliveries, 1) ?? 0,
    respectsTimeToLive: (fields.number(assuredField.respectsTimeToLive, 1) ?? 0) !== 0,
  };
}

/** What a client hears of the queue that it bound to. */
export function encodeProperties(properties: QueueProperties, username: string): readonly Field[] {
  const { accessType, permission, quotaMb, maxRedeliveries, respectsTimeToLive } = properties;
  const granted = properties.owner === username ? "delete" : permission;
  return [
    numberField(assuredField.maxUnsettled, properties.maxUnsettledPerFlow, 4),
    numberField(assuredField.durability, durable, 1),
    numberField(assuredField.accessType, accessTypes[accessType], 1),
    numberField(assuredField.permissions, permissions[permission], 4),
    numberField(assuredField.granted, permissions[granted], 4),
    numberField(assuredField.quotaMb, quotaMb, 4),
    numberField(assuredField.maxMessageBytes, properties.maxMessageBytes, 4),
    numberField(assuredField.respectsTimeToLive, respectsTimeToLive ? 1 : 0, 1),
    numberField(assuredField.maxRedeliveries, maxRedeliveries, 1),
    numberField(assuredField.behaviour, properties.countsDeliveries ? reportsDeliveryCount : 0, 2),
  ];
}

/** Whether a user may do what needs this permission. */
export function allows(
  { owner, permission }: QueueProperties,
  username: string,
  needed: Permission,
): boolean {
  const missing = permissions[needed] & ~permissions[permission];
  return owner === username || missing === 0;
}

function permissionOf(bits: number): Permission {
  const names = Object.keys(permissions) as readonly Permission[];
  return names.findLast((name) => (permissions[name] & ~bits) === 0) ?? "none";
}
