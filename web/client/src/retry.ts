/** Waiting and retrying: every try of a command has the same id, so it takes effect once. */

import { HoldfastError, OutcomeUnknown, Unavailable, errorOf } from "./errors.ts";

export interface Patience {
  /** How long a command is tried, in seconds. The server remembers results for two minutes, so at most 60. */
  forS: number;
  /** How long one try may take, with its whole answer; a server gives up a command after ten seconds by itself. At most 30. */
  tryS: number;
  firstS: number;
  mostS: number;
}

export const PATIENCE: Patience = { forS: 60, tryS: 30, firstS: 0.05, mostS: 2 };

/** After an abort, a command that may have been done is tried for so long: what it was granted has to be given back. */
const FIND_OUT_S = 5;
const NOT_DONE = new Set([429, 503]);

/** Sleep, or reject with the reason of the signal. */
export function pause(seconds: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    if (signal?.aborted) return stop();
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A signal that is aborted once nothing was heard for so long, and with another one. `end` it, so that no timer and no listener is left. */
export class Silence {
  readonly #ends = new AbortController();
  readonly #limitS: number;
  readonly #other: AbortSignal | null | undefined;
  readonly #stop = () => this.#ends.abort(this.#other!.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(limitS: number, other?: AbortSignal | null) {
    this.#limitS = limitS;
    this.#other = other;
    if (other?.aborted) this.#stop();
    other?.addEventListener("abort", this.#stop, { once: true });
    this.heard();
  }

  get signal(): AbortSignal {
    return this.#ends.signal;
  }

  heard(): void {
    clearTimeout(this.#timer);
    const reason = new DOMException(`there was no answer within ${this.#limitS} s`, "TimeoutError");
    this.#timer = setTimeout(() => this.#ends.abort(reason), this.#limitS * 1000);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#other?.removeEventListener("abort", this.#stop);
  }
}

/** Act under a signal that is aborted after `limitS`, and with `other`. */
export async function within<R>(limitS: number, other: AbortSignal | null | undefined, act: (signal: AbortSignal) => Promise<R>): Promise<R> {
  const silence = new Silence(limitS, other);
  try {
    return await act(silence.signal);
  } finally {
    silence.end();
  }
}

/** Whether it is worth another try: the connection failed, or there was no answer in time. */
export function isLost(error: unknown): boolean {
  return error instanceof TypeError || (error as Error | undefined)?.name === "TimeoutError";
}

type Send = (signal: AbortSignal) => Promise<Response>;

/**
 * Send a request until its whole answer is here. What the server refused is thrown at once; after a lost connection, a 429, a 503 or an
 * unknown outcome (504) the same request is sent again, for as long as `patience` says. `signal` ends the tries: of what only reads at
 * once, of another that may have been done after five seconds.
 */
export async function answered(send: Send, patience: Patience, signal?: AbortSignal, isRead = true): Promise<unknown> {
  const late = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => (timer = setTimeout(() => late.abort(signal!.reason), isRead ? 0 : FIND_OUT_S * 1000));
  signal?.throwIfAborted();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await tried(send, patience, signal, late.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

async function tried(send: Send, patience: Patience, signal: AbortSignal | undefined, late: AbortSignal): Promise<unknown> {
  const end = now() + patience.forS;
  let maybeDone = false;
  for (let tries = 0; ; tries++) {
    let pauseS = Math.min(patience.firstS * 2 ** tries, patience.mostS) * (0.5 + Math.random() / 2);
    let last: HoldfastError;
    try {
      const [response, answer] = await within(patience.tryS, late, async (one) => {
        const response = await send(one);
        return [response, response.ok ? await response.json() : await errorOf(response)] as const;
      });
      if (response.ok) return answer;
      last = answer as HoldfastError;
      const again = NOT_DONE.has(response.status) || last.code === "outcome_unknown";
      if (!again) throw last;
      maybeDone ||= last.code === "outcome_unknown";
      pauseS = Math.max(pauseS, Number(response.headers.get("retry-after") ?? 0));
    } catch (error) {
      if (late.aborted) throw signal!.reason;
      if (!isLost(error)) throw error;
      maybeDone = true;
      last = new Unavailable("store_unavailable", 0, `the server could not be reached: ${(error as Error).message}`);
    }
    if (now() + pauseS > end) {
      throw maybeDone ? new OutcomeUnknown("outcome_unknown", last.status, `${last.message}; it may have been done`) : last;
    }
    await pause(pauseS, maybeDone ? late : signal);
  }
}

/** Seconds of a clock that never goes back. */
export function now(): number {
  return performance.now() / 1000;
}
