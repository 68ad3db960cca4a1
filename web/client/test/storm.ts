/** Requests under which the server is killed: before one is sent, while it is under way, behind its answer, in the middle of its answer. */

import type { Server } from "./server.ts";

export class Storm {
  kills = 0;
  readonly #server: Server;
  readonly #every: number;
  readonly #most: number;
  #sent = 0;
  #isDown = false;
  #up: Promise<void> = Promise.resolve();

  /** Kill the server at every `every`th request that posts, at most `most` times. */
  constructor(server: Server, every: number, most: number) {
    this.#server = server;
    this.#every = every;
    this.#most = most;
  }

  readonly fetch: typeof fetch = async (input, init) => {
    const isHit = init?.method === "POST" && !this.#isDown && this.kills < this.#most && ++this.#sent % this.#every === 0;
    if (!isHit) return fetch(input, init);
    this.#isDown = true;
    switch (this.kills++ % 4) {
      case 0: {
        const text = await (await fetch(input, init)).text();
        await this.#restart();
        return new Response(cut(text), { status: 200 });
      }
      case 1:
        await this.#restart();
        return fetch(input, init);
      case 2: {
        const underWay = fetch(input, init);
        underWay.catch(() => undefined);
        await this.#restart();
        return underWay;
      }
      default:
        await (await fetch(input, init)).text();
        await this.#restart();
        throw new TypeError("the answer was lost");
    }
  };

  /** The server as it is after the last kill. */
  calm(): Promise<void> {
    return this.#up;
  }

  /** Returns when it is dead; it comes up by and by. */
  async #restart(): Promise<void> {
    await this.#server.kill();
    this.#up = this.#server.up().then(() => {
      this.#isDown = false;
    });
    this.#up.catch(() => undefined);
  }
}

function cut(text: string): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text.slice(0, text.length / 2)));
      controller.error(new TypeError("the connection was lost"));
    },
  });
}
