/** The TypeScript client of a Holdfast server. */

export { Holdfast, type Body, type Call, type CommandName, type Commands, type Options, type Step } from "./client.ts";
export { Dict, type Entry, type WriteOptions } from "./dict.ts";
export * from "./errors.ts";
export type { Marks } from "./hints.ts";
export { Job } from "./job.ts";
export { decodeKey, encodeKey, newId, type Key } from "./keys.ts";
export { HeldLock, Lock, type LockOptions } from "./lock.ts";
export { Claim, Queue, type ClaimOptions, type PutOptions, type WorkOptions } from "./queue.ts";
export type { WatchOptions } from "./watch.ts";
export type * as wire from "./wire.ts";
