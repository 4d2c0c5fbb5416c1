/**
 * Generated names, so that no input of a caller names a file of this host.
 */
import { randomBytes, randomUUID } from "node:crypto";

/** Returns a unique name that is safe as a file name. */
export type NewId = () => string;

/** 96 random bits in lowercase hex: short for paths, collision-free on one host. */
export const newId: NewId = () => randomBytes(12).toString("hex");

/** A uuid4, as agents use for correlation ids. */
export const newUuid: NewId = () => randomUUID();
