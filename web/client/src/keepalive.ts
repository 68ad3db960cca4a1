/** Keeps a claim or a lease: renews it in time, and says when it can no longer be trusted. */

import { now } from "./retry.ts";

/** A lease is trusted for a tenth less than it lasts, by a second at most: what follows a check takes time, too. */
export function trustedFor(leaseS: number): number {
  return leaseS - Math.min(leaseS / 10, 1);
}

export class Keepalive {
  readonly #lost = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #trustedUntil: number;
  #over = false;

  /**
   * `renew` asks the server for another `leaseS` and resolves to whether it is still held. `started` is the moment, by `now()`, before the
   * request was sent that took it: the server cannot have counted from earlier.
   */
  constructor(leaseS: number, started: number, renew: () => Promise<boolean>, reason: () => Error) {
    this.#trustedUntil = started + trustedFor(leaseS);
    this.#next(leaseS, renew, reason);
  }

  /** Aborted when it is lost. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get lost(): boolean {
    return this.#lost.signal.aborted || (!this.#over && now() >= this.#trustedUntil);
  }

  /** Stop renewing: it is given back, or settled. */
  end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
  }

  #next(leaseS: number, renew: () => Promise<boolean>, reason: () => Error): void {
    const left = this.#trustedUntil - now();
    const wait = Math.max(0, Math.min(leaseS / 3, left));
    this.#timer = setTimeout(async () => {
      const started = now();
      let held: boolean | undefined;
      try {
        held = await renew();
      } catch {
        held = undefined; // Not known: the next try decides, as long as the lease can be trusted.
      }
      if (this.#over) return;
      if (held) this.#trustedUntil = started + trustedFor(leaseS);
      if (held === false || now() >= this.#trustedUntil) {
        this.end();
        this.#lost.abort(reason());
      } else {
        this.#next(held ? leaseS : Math.min(leaseS, 3 * 0.2), renew, reason);
      }
    }, wait * 1000);
  }
}
