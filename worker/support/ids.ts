/**
 * Names of our own making, so that nothing a caller sends ever names a thing on this host.
 */
import { randomBytes, randomUUID } from "node:crypto";

/** Makes a name that is unique and safe as a file name. */
export type NewId = () => string;

/** 96 random bits in lowercase hex: short enough for paths, beyond collision for one host. */
export const newId: NewId = () => randomBytes(12).toString("hex");

/** A uuid4, the form agents use for correlation ids. */
export const newUuid: NewId = () => randomUUID();
