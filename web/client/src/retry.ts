/** Waiting and retrying: every try of a command has the same id, so it takes effect once. */

import { HoldfastError, OutcomeUnknown, Unavailable, errorOf } from "./errors.ts";

export interface Patience {
  /** How long a command is tried, in seconds. The server remembers results for two minutes, so at most 60. */
  forS: number;
  firstS: number;
  mostS: number;
}

export const PATIENCE: Patience = { forS: 60, firstS: 0.05, mostS: 2 };

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

/**
 * Send a request until its whole answer is here. What the server refused is thrown at once; after a lost connection, a 429, a 503 or an
 * unknown outcome (504) the same request is sent again, for as long as `patience` says.
 */
export async function answered(send: () => Promise<Response>, patience: Patience, signal?: AbortSignal | null): Promise<unknown> {
  const end = now() + patience.forS;
  let maybeDone = false;
  for (let tries = 0; ; tries++) {
    let pauseS = Math.min(patience.firstS * 2 ** tries, patience.mostS) * (0.5 + Math.random() / 2);
    let last: HoldfastError;
    try {
      const response = await send();
      if (response.ok) return await response.json();
      last = await errorOf(response);
      const again = NOT_DONE.has(response.status) || last.code === "outcome_unknown";
      if (!again) throw last;
      maybeDone ||= last.code === "outcome_unknown";
      pauseS = Math.max(pauseS, Number(response.headers.get("retry-after") ?? 0));
    } catch (error) {
      if (error instanceof HoldfastError && error.status !== 0) throw error;
      if (signal?.aborted) throw signal.reason;
      if (!(error instanceof TypeError || (error as Error).name === "TimeoutError")) throw error;
      maybeDone = true;
      last = new Unavailable("store_unavailable", 0, `the server could not be reached: ${(error as Error).message}`);
    }
    if (now() + pauseS > end) {
      throw maybeDone ? new OutcomeUnknown("outcome_unknown", last.status, `${last.message}; it may have been done`) : last;
    }
    await pause(pauseS, signal);
  }
}

/** Seconds of a clock that never goes back. */
export function now(): number {
  return performance.now() / 1000;
}
