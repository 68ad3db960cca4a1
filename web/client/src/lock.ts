/** A lock by name: the same one that Python programs take with `Lock(name)`. */

/// <reference lib="esnext.disposable" preserve="true" />

import type { Holdfast } from "./client.ts";
import { LeaseHeld, LeaseLost } from "./errors.ts";
import { Keepalive } from "./keepalive.ts";
import { encodeKey, newId } from "./keys.ts";
import { holderName } from "./queue.ts";
import { now, pause } from "./retry.ts";

export interface LockOptions {
  /** How long the lease lasts unless it is renewed; by default 60 seconds. */
  leaseS?: number;
  holder?: string;
}

export class Lock {
  readonly name: string;
  readonly #client: Holdfast;
  readonly #leaseS: number;
  readonly #holder: string;

  constructor(client: Holdfast, name: string, options: LockOptions = {}) {
    this.#client = client;
    this.name = name;
    this.#leaseS = options.leaseS ?? 60;
    this.#holder = options.holder ?? holderName();
  }

  /** Take the lock if it is free, else undefined. */
  async tryAcquire(): Promise<HeldLock | undefined> {
    return (await this.#ask(newId())).held;
  }

  /** Wait for the lock, by default for ever; throws `LeaseHeld` after `timeoutS`. */
  async acquire(options: { timeoutS?: number; signal?: AbortSignal } = {}): Promise<HeldLock> {
    const end = now() + (options.timeoutS ?? Infinity);
    const leaseId = newId();
    for (;;) {
      const asked = await this.#ask(leaseId, options.signal);
      if (options.signal?.aborted) {
        await asked.held?.release();
        throw options.signal.reason;
      }
      if (asked.held) return asked.held;
      const left = end - now();
      if (left <= 0) throw new LeaseHeld("lease_held", 409, `lock ${this.name} is held by ${asked.holder}`);
      await pause(Math.min(left, asked.endsInS ?? 1, 1), options.signal);
    }
  }

  /** Run a function while holding the lock; its signal is aborted if the lock is lost. */
  async run<R>(work: (held: HeldLock) => Promise<R>, options: { timeoutS?: number; signal?: AbortSignal } = {}): Promise<R> {
    const held = await this.acquire(options);
    try {
      const result = await work(held);
      if (held.lost) throw held.error();
      return result;
    } finally {
      await held.release();
    }
  }

  async #ask(leaseId: string, signal?: AbortSignal): Promise<{ held?: HeldLock; holder: string; endsInS?: number | null }> {
    const started = now();
    const key = encodeKey(["lock", this.name]);
    const body = { dict: null, key, holder: this.#holder, lease_id: leaseId, lease_s: this.#leaseS };
    const { lease, ends_in_s } = await this.#client.execute("Acquire", body, signal ? { signal } : {});
    if (lease.lease_id !== leaseId) return { holder: lease.holder, endsInS: ends_in_s ?? null };
    return { held: new HeldLock(this.#client, this.name, key, leaseId, lease.token, this.#leaseS, started), holder: lease.holder };
  }
}

export class HeldLock {
  readonly name: string;
  /** The fencing token: larger than that of every earlier holder. */
  readonly token: number;
  readonly #client: Holdfast;
  readonly #lease: [null, string, string];
  readonly #keepalive: Keepalive;

  constructor(client: Holdfast, name: string, key: string, leaseId: string, token: number, leaseS: number, started: number) {
    this.#client = client;
    this.name = name;
    this.token = token;
    this.#lease = [null, key, leaseId];
    const renew = async () => (await client.execute("Renew", { names: [this.#lease], lease_s: leaseS })).leases[0] != null;
    this.#keepalive = new Keepalive(leaseS, started, renew, () => this.error());
  }

  get lost(): boolean {
    return this.#keepalive.lost;
  }

  /** Aborted when the lock is lost. */
  get signal(): AbortSignal {
    return this.#keepalive.signal;
  }

  async release(): Promise<void> {
    this.#keepalive.end();
    await this.#client.execute("Release", { names: [this.#lease] });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  error(): LeaseLost {
    return new LeaseLost("lease_lost", 409, `lock ${this.name} is lost: another holder may have it`);
  }
}
