/** What the parts of the suite share. */

import assert from "node:assert/strict";

import type { Claim, Holdfast, HoldfastError, wire } from "../../src/index.ts";

export type Cases = Record<string, (client: Holdfast) => Promise<void>>;

let count = 0;

/** A name that no other test uses. */
export function fresh(what = "q"): string {
  return `${what}-${++count}`;
}

/** The claim of a message that must be there. */
export async function claimOne<T>(queue: { claim(): Promise<Claim<T> | undefined> }): Promise<Claim<T>> {
  const claim = await queue.claim();
  assert.ok(claim);
  return claim;
}

export function refused(code: string): (error: HoldfastError) => boolean {
  return (error) => error.code === code;
}

/** A queue without a message in any state. */
export async function empty(queue: { stats(): Promise<wire.Stats> }): Promise<void> {
  const { ready, delayed, buffered, leased, dead, done } = await queue.stats();
  assert.deepEqual([ready, delayed, buffered, leased, dead, done], [0, 0, 0, 0, 0, 0]);
}
