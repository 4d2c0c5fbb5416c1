/**
 * Generated names, so that no input of a caller names a file of this host.
 */
import { randomFillSync, randomUUID } from "node:crypto";

/** Returns a unique name that is safe as a file name. */
export type NewId = () => string;

const idBytes = 12;
/**
 * Random bytes that were drawn at once, which takes as long as for one id. Some are words of
 * templates (ADR 49): no child of this process and no snapshot may have them.
 */
const drawn = Buffer.alloc(256 * idBytes);
let usedBytes = drawn.length;

/** 96 random bits in lowercase hex: short for paths, collision-free on one host. */
export const newId: NewId = () => {
  if (usedBytes === drawn.length) {
    randomFillSync(drawn);
    usedBytes = 0;
  }
  const start = usedBytes;
  usedBytes += idBytes;
  return drawn.toString("hex", start, usedBytes);
};

/** A uuid4, as agents use for correlation ids. */
export const newUuid: NewId = () => randomUUID();
