/**
 * The real library: set up, with its events as promises and its failures as errors.
 */
import solace from "solclientjs";

const init = new solace.SolclientFactoryProperties();
init.profile = solace.SolclientFactoryProfiles.version10_5;
// What goes wrong on purpose is no news.
init.logLevel = solace.LogLevel.FATAL;
solace.SolclientFactory.init(init);

/** Its types do not have this. */
const errorSubcodes = solace.ErrorSubcode as unknown as { nameOf(subcode: number): string };

/** The library reported a failure: the event, and the words for its cause. */
export class PeerError extends Error {
  readonly subcode: string;

  constructor(event: string, { subcode, text }: { subcode: number | undefined; text: string }) {
    super(`${event}: ${text}`);
    this.name = "PeerError";
    this.subcode = errorSubcodes.nameOf(subcode ?? 0);
  }
}

/** What the library tells, in either of its two spellings. */
export interface PeerEvent {
  readonly infoStr?: string;
  readonly message?: string;
  readonly errorSubcode?: number;
  readonly subcode?: number;
  readonly correlationKey?: string | null;
}

/** The subcode with which something failed; undefined when it did not. */
export async function subcodeOf(attempt: Promise<unknown>): Promise<string | undefined> {
  try {
    await attempt;
    return undefined;
  } catch (error) {
    if (error instanceof PeerError) return error.subcode;
    throw error;
  }
}

/** Waits for one event, unless one of the others comes first. */
export function settled(
  emitter: solace.Session | solace.MessageConsumer,
  success: number | string,
  failures: readonly (number | string)[],
  act: () => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    emitterOf(emitter).once(success, () => resolve());
    for (const failure of failures) {
      emitterOf(emitter).once(failure, (event: PeerEvent) =>
        reject(errorOf(String(failure), event)),
      );
    }
    act();
  });
}

/** The failure that an event tells of. */
export function errorOf(name: string, event: PeerEvent): PeerError {
  return new PeerError(name, {
    subcode: event.errorSubcode ?? event.subcode,
    text: event.infoStr ?? event.message ?? "",
  });
}

/** Both emitters, whose types have one overload for each event. */
interface Emitter {
  on(event: number | string, listener: (event: never) => void): unknown;
  once(event: number | string, listener: (event: never) => void): unknown;
}

export function emitterOf(emitter: solace.Session | solace.MessageConsumer): Emitter {
  return emitter as unknown as Emitter;
}

/** A durable queue of this name. */
export function descriptor(name: string): solace.QueueDescriptor {
  return new solace.QueueDescriptor({ name, type: solace.QueueType.QUEUE, durable: true });
}

/** The body as text. */
export function bodyOf(message: solace.Message): string {
  return Buffer.from((message.getBinaryAttachment() ?? "") as Uint8Array).toString();
}
