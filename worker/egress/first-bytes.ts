/**
 * What the first bytes of a connection have to be. They stay to be read.
 */
import type { Socket } from "node:net";
import { getExtensionData, readTlsClientHello } from "read-tls-client-hello";
import type { RefusalReason } from "../protocol/execution.ts";
import type { Destination, Grant } from "./policy.ts";

/** Milliseconds for the first message of TLS. */
const helloMs = 10_000;

/** The port on which nothing but TLS passes. */
const tlsPort = 443;

/** First byte of a TLS handshake: RFC 8446, section 5.1. */
export const handshakeRecord = 0x16;

/**
 * Why a connection is refused by its first bytes, once they are there; undefined for one that goes
 * on, and for one that ends without any. TLS must name the host of the connection: others are
 * behind the same address.
 */
export async function refusalOfFirstBytes(
  client: Socket,
  destination: Destination,
  { allowsAnySni }: Grant,
): Promise<RefusalReason | undefined> {
  const first = await firstByte(client);
  if (first === undefined) return undefined;
  if (first !== handshakeRecord)
    return destination.port === tlsPort && !allowsAnySni ? "not-tls" : undefined;
  if (allowsAnySni || destination.kind === "address") return undefined;
  const end = (): void => void client.destroy();
  const timer = setTimeout(end, helloMs);
  client.once("end", end);
  try {
    const hello = await readTlsClientHello(client);
    const { serverName = "" } = getExtensionData(hello, "server_name") ?? {};
    const isSame = serverName.toLowerCase() === destination.name;
    return isSame && !hasOtherBits(client, destination.name) ? undefined : "sni";
  } catch {
    return "sni";
  } finally {
    clearTimeout(timer);
    client.off("end", end);
  }
}

/**
 * Whether what waits has the name with other high bits, which the parser drops and servers do not.
 */
function hasOtherBits(client: Socket, name: string): boolean {
  const bytes = client.read() as Buffer | null;
  if (bytes === null) return false;
  client.unshift(bytes);
  const count = (text: string): number => text.toLowerCase().split(name).length;
  return count(bytes.toString("ascii")) !== count(bytes.toString("latin1"));
}

/** Undefined for a connection that ends without one. */
export async function firstByte(client: Socket): Promise<number | undefined> {
  for (;;) {
    const chunk = client.read() as Buffer | null;
    if (chunk !== null) {
      client.unshift(chunk);
      return chunk[0];
    }
    if (client.readableEnded || client.destroyed) return undefined;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        for (const event of ["readable", "end", "close"]) client.off(event, settle);
        resolve();
      };
      for (const event of ["readable", "end", "close"]) client.once(event, settle);
    });
  }
}
