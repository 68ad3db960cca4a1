/** A job: a message that a worker runs as a function. */

import type { Holdfast } from "./client.ts";
import type * as wire from "./wire.ts";

export class Job {
  readonly client: Holdfast;
  readonly queue: string;
  readonly id: string;

  constructor(client: Holdfast, queue: string, id: string) {
    this.client = client;
    this.queue = queue;
    this.id = id;
  }

  /** Its status, the recorded steps of a durable one, and why it is not running. */
  view(): Promise<wire.JobView> {
    return this.client.get(this.#path());
  }

  /** Remove it if it waits, ask its worker if it runs; `force` removes a durable one with its steps. */
  async cancel(options: { force?: boolean } = {}): Promise<wire.Cancelled["became"]> {
    return (await this.client.post<wire.Cancelled>(this.#path("/cancel"), options)).became;
  }

  /** Give a dead one another chance; whether it was dead. */
  async retry(): Promise<boolean> {
    return (await this.client.post<wire.Retried>(this.#path("/retry"), {})).retried;
  }

  /** Send a durable one a signal. */
  async send(name: string, payload: unknown = null): Promise<boolean> {
    return (await this.client.post<{ sent: boolean }>(this.#path(`/signals/${encodeURIComponent(name)}`), payload)).sent;
  }

  #path(rest = ""): string {
    return `/v1/queues/${encodeURIComponent(this.queue)}/jobs/${encodeURIComponent(this.id)}${rest}`;
  }
}
