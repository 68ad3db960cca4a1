/** One waiting request for everything that the screens show. */

import type { Holdfast, Marks } from "../../client/src/index.ts";

export class Live {
  readonly #client: Holdfast;
  readonly #followers = new Map<string, Set<() => void>>();
  readonly #marks: Marks = new Map();
  #waiting: (() => void)[] = [];
  #end = new AbortController();
  #isPlanned = false;

  constructor(client: Holdfast) {
    this.#client = client;
  }

  /** Call back when one of the topics may have changed; `ready` is called once no change can be missed any more. The answer ends it. */
  follow(topics: readonly string[], changed: () => void, ready: () => void): () => void {
    const isNew = topics.some((topic) => !this.#marks.has(topic));
    for (const topic of topics) {
      this.#followers.set(topic, (this.#followers.get(topic) ?? new Set()).add(changed));
      if (!this.#marks.has(topic)) this.#marks.set(topic, null);
    }
    if (isNew) {
      this.#waiting.push(ready);
      this.#plan();
    } else {
      ready();
    }
    return () => {
      for (const topic of topics) {
        const followers = this.#followers.get(topic);
        followers?.delete(changed);
        if (!followers?.size) {
          this.#followers.delete(topic);
          this.#marks.delete(topic);
        }
      }
      this.#plan();
    };
  }

  /** Begin to wait on the topics there are now, once for all changes of this moment. */
  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setTimeout(() => {
      this.#isPlanned = false;
      this.#end.abort();
      this.#end = new AbortController();
      void this.#run(this.#end.signal);
    });
  }

  async #run(signal: AbortSignal): Promise<void> {
    try {
      for await (const topics of this.#client.hints(this.#marks, signal)) {
        this.#tellReady();
        for (const changed of new Set(topics.flatMap((topic) => [...(this.#followers.get(topic) ?? [])]))) changed();
      }
    } catch {
      // Waits are refused: the screens show what they read.
    }
    if (!signal.aborted) this.#tellReady();
  }

  #tellReady(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const ready of waiting) ready();
  }
}
