/** A shared dict: entries by key, with compare-and-set, increments and fences. */

import type { Body, Holdfast } from "./client.ts";
import { type Key, decodeKey, encodeKey, keyPrefix } from "./keys.ts";
import { type WatchOptions } from "./watch.ts";
import type * as wire from "./wire.ts";

export interface Entry<V> {
  key: Key;
  value: V;
  revision: number;
}

export interface PageOptions {
  /** What the keys begin with: a text, or the first members of longer lists. */
  prefix?: string | readonly Key[];
  after?: Key;
  limit?: number;
}

export interface WriteOptions {
  ttlS?: number;
  /** A fencing token: refused if a larger one has written the entry. */
  fence?: number;
}

type Change = Body<"Write">["changes"][number];

export class Dict<V = unknown> {
  readonly client: Holdfast;
  readonly name: string;

  constructor(client: Holdfast, name: string) {
    this.client = client;
    this.name = name;
  }

  /** The value under a key, or undefined. */
  async get(key: Key): Promise<V | undefined> {
    return (await this.entry(key))?.value;
  }

  /** The entry under a key, with its revision, or undefined. */
  async entry(key: Key): Promise<Entry<V> | undefined> {
    const { entries } = await this.client.execute("Read", { dict: this.name, keys: [encodeKey(key)] });
    return entries[0] && seen<V>(entries[0]);
  }

  /** Entries in the order of their keys' text, up to a limit, after a key; of large ones there may be fewer, and `page` says so. */
  async entries(options: PageOptions = {}): Promise<Entry<V>[]> {
    return (await this.page(options)).entries;
  }

  /** The same, and whether there are more behind the last. */
  async page(options: PageOptions = {}): Promise<{ entries: Entry<V>[]; more: boolean }> {
    const body: Body<"Read"> = { dict: this.name, limit: options.limit ?? 1000 };
    if (options.prefix !== undefined) body.prefix = keyPrefix(options.prefix);
    if (options.after !== undefined) body.after = encodeKey(options.after);
    const { entries, more } = await this.client.execute("Read", body);
    return { entries: entries.map((entry) => seen<V>(entry)), more: more ?? false };
  }

  async put(key: Key, value: V, options: WriteOptions = {}): Promise<boolean> {
    return (await this.#write(key, { value }, options)).because == null;
  }

  /** Store a value if the entry has this revision; 0 is an entry that is not there. Whether it was stored. */
  async compareAndSet(key: Key, revision: number, value: V, options: WriteOptions = {}): Promise<boolean> {
    const condition: Partial<Change> = revision === 0 ? { expect: "absent" } : { expect: "revision", revision };
    return (await this.#write(key, { value, ...condition }, options)).because == null;
  }

  /** Add to a number; the new one. */
  async increment(key: Key, by = 1, options: WriteOptions = {}): Promise<number> {
    const written = await this.#write(key, { do: "increment", by }, options);
    return written.entry!.value as number;
  }

  /** Remove an entry; whether there was one. */
  async delete(key: Key): Promise<boolean> {
    const written = await this.#write(key, { do: "delete" }, {});
    return written.because == null && written.entry != null;
  }

  watch(options: WatchOptions = {}): AsyncGenerator<wire.Event> {
    return this.client.watch(`dict:${this.name}`, options);
  }

  async #write(key: Key, change: Partial<Change>, options: WriteOptions): Promise<wire.Written> {
    const whole = { key: encodeKey(key), ...change } as Change;
    if (options.ttlS !== undefined) whole.ttl_s = options.ttlS;
    if (options.fence !== undefined) whole.fence = options.fence;
    return (await this.client.execute("Write", { dict: this.name, changes: [whole] }))[0]!;
  }
}

function seen<V>(entry: wire.Entry): Entry<V> {
  return { key: decodeKey(entry.key), value: entry.value as V, revision: entry.revision };
}
