/**
 * Login: what a client says of itself, and what the broker answers.
 */
import {
  type Field,
  type Fields,
  MalformedError,
  encodeLongFields,
  numberBytes,
  numberField,
  readLongFields,
  readNumber,
  slice,
  textField,
} from "./fields.ts";
import { type Params, extended, param, readExtended } from "./params.ts";

/** How a client proves who it is. */
export type AuthenticationScheme = "basic" | "client-certificate" | "oauth";

/** What a client says when it logs in. */
export interface Login {
  readonly clientName: string;
  readonly vpn: string;
  readonly scheme: AuthenticationScheme;
  readonly username: string;
  readonly password: string;
  /** The token of a login by OAuth. */
  readonly accessToken: string | undefined;
  /** The common name of its TLS certificate, where it showed one. */
  readonly certificateName: string | undefined;
  readonly description: string;
}

/** What the broker says of itself and of a client that it lets in. */
export interface Welcome {
  readonly routerName: string;
  readonly clientName: string;
  readonly vpn: string;
  /** Topics below it reach this client alone. */
  readonly inbox: string;
}

/** What a message of the kind is about. */
export const clientControl = { login: 0, update: 1 } as const;

/** Types of fields; the client and the broker each fill some of them in. */
const field = {
  softwareVersion: 0,
  platform: 2,
  description: 4,
  clientName: 5,
  vpn: 6,
  inbox: 8,
  capabilities: 9,
  virtualRouterName: 10,
  routerName: 12,
  authenticationScheme: 17,
  extendedCapabilities: 19,
} as const;

const schemes: ReadonlyMap<number, AuthenticationScheme> = new Map([
  [0x00, "basic"],
  [0x01, "client-certificate"],
  [0x0a, "oauth"],
]);

/** What this broker can do, by the numbers of the bits that say so. */
const capabilityBits: readonly number[] = [
  2, // receives guaranteed messages
  4, // publishes guaranteed messages
  6, // manages endpoints
  8, // respects times to live
  9, // subscriptions of queues
  15, // changes of flows
  23, // shared subscriptions
  25, // settlement as failed and rejected
  26, // extensions of variable length
];
const capabilityBitCount = 27;

/** Capabilities that have a value. */
const capability = { speed: 0, portType: 1, maxGuaranteedBytes: 2, maxDirectBytes: 3 } as const;
/**
 * In the extended capabilities: the versions of assured control that are spoken, first and last.
 */
const assuredControlVersions = 4;

/** The largest body of a guaranteed and of a direct message, as told to clients. */
export const maxMessageBytes = 30 * 1024 * 1024;

const version = 1;
const headBytes = 6;

/** Whether it is a login or an update, and its fields. Throws MalformedError. */
export function decodeClientControl(payload: Buffer): {
  readonly type: number;
  readonly fields: Fields;
} {
  const head = slice(payload, 0, headBytes);
  return {
    type: head[1] ?? 0,
    fields: readLongFields(slice(payload, headBytes, readNumber(head.subarray(2)))),
  };
}

/** What a client says when it logs in. Throws MalformedError. */
export function readLogin(
  { fields: header }: Params,
  fields: Fields,
  certificateName: string | undefined,
): Login {
  const scheme = schemes.get(fields.number(field.authenticationScheme, 1) ?? 0);
  if (scheme === undefined) throw new MalformedError("an unknown authentication scheme");
  return {
    clientName: fields.text(field.clientName) ?? "",
    vpn: fields.text(field.vpn) || "default",
    scheme,
    username: base64Text(header, param.username),
    password: base64Text(header, param.password),
    accessToken: readExtended(header).text(extended.accessToken),
    certificateName,
    description: fields.text(field.description) ?? "",
  };
}

function base64Text(header: Fields, type: number): string {
  return Buffer.from(header.text(type) ?? "", "base64").toString();
}

/** The body of the answer to a login that is accepted. */
export function encodeWelcome({ routerName, clientName, vpn, inbox }: Welcome): Buffer {
  return encodeClientControl(clientControl.login, [
    textField(field.softwareVersion, "1.0"),
    textField(field.platform, "SMF test broker"),
    textField(field.clientName, clientName),
    textField(field.vpn, vpn),
    textField(field.inbox, inbox),
    { type: field.capabilities, value: encodeCapabilities() },
    textField(field.virtualRouterName, `v:${routerName}`),
    textField(field.routerName, routerName),
    {
      type: field.extendedCapabilities,
      value: Buffer.concat([
        Buffer.of(0),
        encodeLongFields([{ type: assuredControlVersions, value: Buffer.of(3, 3) }]),
      ]),
    },
  ]);
}

/** The bytes of a message about a client. */
export function encodeClientControl(type: number, fields: readonly Field[]): Buffer {
  const body = encodeLongFields(fields);
  return Buffer.concat([Buffer.of(version, type), numberBytes(headBytes + body.length, 4), body]);
}

function encodeCapabilities(): Buffer {
  const bitmap = Buffer.alloc(Math.ceil(capabilityBitCount / 8));
  for (const bit of capabilityBits) {
    const at = Math.floor(bit / 8);
    bitmap[at] = (bitmap[at] ?? 0) | (0x80 >> (bit % 8));
  }
  return Buffer.concat([
    Buffer.of(capabilityBitCount),
    bitmap,
    encodeLongFields([
      numberField(capability.speed, 1_000, 4),
      numberField(capability.portType, 0, 1),
      numberField(capability.maxGuaranteedBytes, maxMessageBytes, 4),
      numberField(capability.maxDirectBytes, maxMessageBytes, 4),
    ]),
  ]);
}
