/** A queue: put messages, claim them under a lease, settle them, or work on them in a loop. */

import type { Body, Holdfast } from "./client.ts";
import { ClaimLost } from "./errors.ts";
import type { Marks } from "./hints.ts";
import { Keepalive } from "./keepalive.ts";
import { type Key, decodeKey, encodeKey, newId } from "./keys.ts";
import { now, pause } from "./retry.ts";
import { type WatchOptions } from "./watch.ts";
import type * as wire from "./wire.ts";

export interface PutOptions {
  id?: string;
  key?: Key;
  ifReady?: wire.Item["if_ready"];
  ifLeased?: wire.Item["if_leased"];
  delayS?: number;
  priority?: number;
  maxAttempts?: number;
  deadLetterQueue?: string;
  startWithinS?: number;
  metadata?: Record<string, unknown>;
  labels?: string[];
  group?: string;
}

export interface ClaimOptions {
  /** How long the claim lasts unless it is renewed; by default 60 seconds. */
  leaseS?: number;
  /** Wait for so long for a message; by default it asks once. */
  waitS?: number;
  holder?: string;
  /** Ends the wait; what was claimed when it is aborted is given back. */
  signal?: AbortSignal;
}

export interface WorkOptions extends ClaimOptions {
  /** How many messages are worked on at once; by default 1. */
  concurrency?: number;
  /** After how many failures a message that says nothing itself is dead; by default 3. */
  maxAttempts?: number;
  /** Ends the loop; what runs is finished first. */
  signal?: AbortSignal;
  /** Called with each failure of a handler. */
  onError?: (error: unknown, claim: Claim<never>) => void;
}

const LEASE_S = 60;
const WAIT_S = 20;
const MAX_ATTEMPTS = 3;

export class Queue<T = unknown> {
  readonly client: Holdfast;
  readonly name: string;

  constructor(client: Holdfast, name: string) {
    this.client = client;
    this.name = name;
  }

  /** Add a message; the answer says whether it is new, or met one that was there. */
  async put(value: T, options: PutOptions = {}): Promise<{ id: string; created: boolean }> {
    const { ids, created } = await this.client.execute("Put", { queue: this.name, items: [item(value, options)] });
    return { id: ids[0]!, created: created[0]! };
  }

  /** Add messages, all or none, in this order. */
  async putMany(values: Iterable<T>, options: Omit<PutOptions, "id" | "key"> = {}): Promise<string[]> {
    const items = [...values].map((value) => item(value, options));
    return items.length ? (await this.client.execute("Put", { queue: this.name, items })).ids : [];
  }

  /** Claim the first message, or undefined if there is none. It is not renewed until `keep` is called on it. */
  async claim(options: ClaimOptions = {}): Promise<Claim<T> | undefined> {
    return (await this.claimMany(1, options))[0];
  }

  /** Claim up to `limit` messages in one step. */
  claimMany(limit: number, options: ClaimOptions & { maxAttempts?: number } = {}): Promise<Claim<T>[]> {
    return this.#claim(limit, options, new Map());
  }

  /** Ask, and while there is nothing wait for a hint and ask again. Each asking has an id of its own, so an answer that is lost comes again. */
  async #claim(limit: number, options: ClaimOptions & { maxAttempts?: number }, marks: Marks): Promise<Claim<T>[]> {
    const { leaseS = LEASE_S, signal } = options;
    const body: Body<"Claim"> = { queue: this.name, holder: options.holder ?? holderName(), lease_s: leaseS, limit };
    if (options.maxAttempts !== undefined) body.max_attempts = options.maxAttempts;
    const end = now() + (options.waitS ?? 0);
    for (;;) {
      signal?.throwIfAborted();
      // A lease is counted from before the request: it may be trusted for less than it lasts, never for longer.
      const started = now();
      const { messages, due_in_s, careful } = await this.client.execute("Claim", body, signal ? { signal } : {});
      const claims = messages.map((message) => new Claim<T>(this.client, message, leaseS, started));
      if (signal?.aborted) await this.#giveBack(claims, careful ?? false);
      else if (claims.length) return claims;
      // Zero: it looked after ended leases only, and there may be more behind them.
      else if (due_in_s !== 0) {
        const left = end - now();
        if (left <= 0) return [];
        await this.client.hinted(`queue:${this.name}`, marks, Math.min(left, due_in_s ?? Infinity), signal);
      }
    }
  }

  async #giveBack(claims: readonly Claim<T>[], careful: boolean): Promise<void> {
    const receipts = claims.map(({ receipt }) => receipt);
    // If the server cannot be reached, the lease ends by itself.
    if (receipts.length) await this.client.execute("Settle", { receipts, to: "ready", return_to: "place", unstarted: careful }).catch(() => undefined);
  }

  /**
   * Work on messages until the signal is aborted: the handler's return acknowledges a message, its exception is a failure. Claims are
   * renewed meanwhile; `claim.signal` is aborted if one is lost.
   */
  async work(handler: (value: T, claim: Claim<T>) => unknown, options: WorkOptions = {}): Promise<void> {
    const { concurrency = 1, signal } = options;
    const marks: Marks = new Map();
    const running = new Set<Promise<unknown>>();
    const failures: unknown[] = [];
    while (!signal?.aborted && !failures.length) {
      if (running.size >= concurrency) {
        await Promise.race(running);
        continue;
      }
      for (const claim of await this.#next(concurrency - running.size, options, marks)) {
        const job: Promise<unknown> = this.#handle(claim, handler, options).catch((error: unknown) => failures.push(error)).finally(() => running.delete(job));
        running.add(job);
      }
    }
    await Promise.all(running);
    if (failures.length) throw failures[0];
  }

  /** The next claims of a loop, none after a while, an error or the abortion of its signal. */
  async #next(limit: number, options: WorkOptions, marks: Marks): Promise<Claim<T>[]> {
    try {
      return await this.#claim(limit, { maxAttempts: MAX_ATTEMPTS, waitS: WAIT_S, ...options }, marks);
    } catch (error) {
      if (options.signal?.aborted) return [];
      options.onError?.(error, undefined as never);
      await pause(1, options.signal).catch(() => undefined);
      return [];
    }
  }

  async #handle(claim: Claim<T>, handler: (value: T, claim: Claim<T>) => unknown, options: WorkOptions): Promise<void> {
    claim.keep();
    try {
      await handler(claim.value, claim);
      await claim.ack();
    } catch (error) {
      options.onError?.(error, claim as unknown as Claim<never>);
      if (error instanceof ClaimLost) return;
      await claim.fail(String((error as Error)?.stack ?? error), options.maxAttempts ?? MAX_ATTEMPTS).catch((lost: unknown) => {
        options.onError?.(lost, claim as unknown as Claim<never>);
      });
    } finally {
      claim.end();
    }
  }

  stats(): Promise<wire.Stats> {
    return this.client.execute("Count", { queue: this.name });
  }

  /** Messages of one state, a page at a time: give `after` of the answer for the next. */
  browse(state: "ready" | "leased" | "dead" | "buffered" | "done" = "ready", more: Partial<Body<"Browse">> = {}): Promise<wire.Browsed> {
    return this.client.execute("Browse", { queue: this.name, state, ...more });
  }

  /** Give dead letters another chance, all or those named; the answer has the ids of those that went. */
  redrive(ids?: string[]): Promise<wire.Moved> {
    return this.client.execute("Move", { queue: this.name, to: "ready", ids: ids ?? null, state: "dead" });
  }

  async pause(): Promise<void> {
    await this.client.execute("Configure", { kind: "queue", name: this.name, paused: true });
  }

  async resume(): Promise<void> {
    await this.client.execute("Configure", { kind: "queue", name: this.name, paused: false });
  }

  watch(options: WatchOptions = {}): AsyncGenerator<wire.Event> {
    return this.client.watch(`queue:${this.name}`, options);
  }
}

/** A message that is held until its lease ends. */
export class Claim<T = unknown> {
  readonly message: wire.Message;
  readonly #client: Holdfast;
  readonly #leaseS: number;
  readonly #started: number;
  #keepalive: Keepalive | undefined;

  constructor(client: Holdfast, message: wire.Message, leaseS: number, started: number) {
    this.#client = client;
    this.message = message;
    this.#leaseS = leaseS;
    this.#started = started;
  }

  get id(): string {
    return this.message.id;
  }

  get value(): T {
    return this.message.value as T;
  }

  get key(): Key | undefined {
    return this.message.key == null ? undefined : decodeKey(this.message.key);
  }

  /** The fencing token: larger than that of every earlier claim. */
  get token(): number {
    return this.message.token!;
  }

  get attempts(): number {
    return this.message.attempts!;
  }

  /** Names the claim in commands. */
  get receipt(): wire.Receipt {
    return [this.message.queue, this.message.id, this.token];
  }

  /** Renew it in the background until it is settled or lost. */
  keep(): this {
    this.#keepalive ??= new Keepalive(this.#leaseS, this.#started, () => this.renew(this.#leaseS), () => this.#lost());
    return this;
  }

  /** Aborted when the claim is lost; `keep` first. */
  get signal(): AbortSignal {
    return this.keep().#keepalive!.signal;
  }

  /** Keep it from now on for so long; whether it was still held. */
  async renew(leaseS: number): Promise<boolean> {
    return (await this.#client.execute("Extend", { receipts: [this.receipt], lease_s: leaseS })).held[0]!;
  }

  /** It is done. Throws `ClaimLost` if it is no longer held. */
  ack(): Promise<void> {
    return this.#settle({ to: "done" });
  }

  /** Give it back without counting a failure. */
  release(delayS = 0): Promise<void> {
    return this.#settle({ to: "ready", delay_s: delayS });
  }

  /** It failed: it is tried again, or dead if its attempts are spent. */
  fail(error: string, maxAttempts?: number): Promise<void> {
    return this.#settle({ to: "ready", counts: true, error, ...(maxAttempts === undefined ? {} : { max_attempts: maxAttempts }) });
  }

  /** Make it a dead letter at once. */
  bury(error: string): Promise<void> {
    return this.#settle({ to: "dead", counts: true, error });
  }

  /** Stop renewing. */
  end(): void {
    this.#keepalive?.end();
  }

  async #settle(how: Omit<Body<"Settle">, "receipts">): Promise<void> {
    this.end();
    const { held } = await this.#client.execute("Settle", { receipts: [this.receipt], ...how });
    if (!held[0]) throw this.#lost();
  }

  #lost(): ClaimLost {
    const detail = `the claim on message ${this.id} of queue ${this.message.queue} is lost: another worker may have it`;
    return new ClaimLost("claim_lost", 409, detail);
  }
}

function item(value: unknown, options: PutOptions): wire.Item {
  const given: wire.Item = { id: options.id ?? newId(), value };
  if (options.key !== undefined) given.key = encodeKey(options.key);
  if (options.ifReady !== undefined) given.if_ready = options.ifReady;
  if (options.ifLeased !== undefined) given.if_leased = options.ifLeased;
  if (options.delayS !== undefined) given.delay_s = options.delayS;
  if (options.priority !== undefined) given.priority = options.priority;
  if (options.maxAttempts !== undefined) given.max_attempts = options.maxAttempts;
  if (options.deadLetterQueue !== undefined) given.dead_letter = options.deadLetterQueue;
  if (options.startWithinS !== undefined) given.start_within_s = options.startWithinS;
  if (options.metadata !== undefined) given.metadata = options.metadata;
  if (options.labels !== undefined) given.labels = options.labels;
  if (options.group !== undefined) given.group = options.group;
  return given;
}

let name: string | undefined;

/** The default name of a holder: one for each program. */
export function holderName(): string {
  name ??= `js:${newId().slice(0, 13)}`;
  return name;
}
