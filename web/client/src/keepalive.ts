/** Keeps a claim or a lease: renews it in time, and says when it can no longer be trusted. */

import { now } from "./retry.ts";

/** How soon a renewal is tried again whose outcome is not known. */
const AGAIN_S = 0.2;

/** A lease is trusted for a tenth less than it lasts, by a second at most: what follows a check takes time, too. */
export function trustedFor(leaseS: number): number {
  return leaseS - Math.min(leaseS / 10, 1);
}

export class Keepalive {
  readonly #lost = new AbortController();
  readonly #reason: () => Error;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Ends the trust while the server is silent: a renewal may be tried for longer than the lease lasts. */
  #ending: ReturnType<typeof setTimeout> | undefined;
  #trustedUntil: number;
  #over = false;

  /**
   * `renew` asks the server for another `leaseS` and resolves to whether it is still held. `started` is the moment, by `now()`, before the
   * request was sent that took it: the server cannot have counted from earlier.
   */
  constructor(leaseS: number, started: number, renew: () => Promise<boolean>, reason: () => Error) {
    this.#reason = reason;
    this.#trustedUntil = started + trustedFor(leaseS);
    const left = this.#trustedUntil - now();
    if (left > 0) this.#trust(this.#trustedUntil); // Else the first renewal says whether it is still held.
    this.#next(leaseS, Math.max(0, Math.min(leaseS / 3, left / 2)), renew);
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
    clearTimeout(this.#ending);
  }

  #trust(until: number): void {
    this.#trustedUntil = until;
    clearTimeout(this.#ending);
    this.#ending = setTimeout(() => this.#lose(), Math.max(0, until - now()) * 1000);
  }

  #lose(): void {
    this.end();
    this.#lost.abort(this.#reason());
  }

  #next(leaseS: number, afterS: number, renew: () => Promise<boolean>): void {
    this.#timer = setTimeout(async () => {
      const started = now();
      let held: boolean | undefined;
      try {
        held = await renew();
      } catch {
        held = undefined; // Not known: the next try decides, as long as the lease can be trusted.
      }
      if (this.#over) return;
      if (held) this.#trust(started + trustedFor(leaseS));
      if (held === false || now() >= this.#trustedUntil) return this.#lose();
      this.#next(leaseS, held ? leaseS / 3 : Math.min(leaseS / 3, AGAIN_S), renew);
    }, afterS * 1000);
  }
}
