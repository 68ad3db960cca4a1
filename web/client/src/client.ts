/** The connection to a server: commands, steps of several commands, and what stands on them. */

import { Dict } from "./dict.ts";
import { type Marks, hinted, hints } from "./hints.ts";
import { Job } from "./job.ts";
import { newId } from "./keys.ts";
import { Lock, type LockOptions } from "./lock.ts";
import { Queue } from "./queue.ts";
import { PATIENCE, type Patience, answered } from "./retry.ts";
import { type WatchOptions, watch } from "./watch.ts";
import type * as wire from "./wire.ts";

/** The commands, and what each answers. */
export interface Commands {
  Acquire: [wire.Acquire, wire.Acquired];
  Break: [wire.Break, wire.Broken];
  Browse: [wire.Browse, wire.Browsed];
  Changes: [wire.Changes, wire.Page];
  Claim: [wire.Claim, wire.Claimed];
  Clear: [wire.Clear, number];
  Configure: [wire.Configure, wire.Settings];
  Count: [wire.Count, wire.Stats];
  Counts: [wire.Counts, wire.Counted];
  Extend: [wire.Extend, wire.Held];
  Groups: [wire.Groups, wire.Grouped];
  Leases: [wire.Leases, wire.Listed];
  Length: [wire.Length, number];
  Look: [wire.Look, wire.Looked];
  Move: [wire.Move, wire.Moved];
  Names: [wire.Names, wire.Named];
  Put: [wire.Put, wire.Puts];
  Read: [wire.Read, wire.Entries];
  Release: [wire.Release, wire.Released];
  Renew: [wire.Renew, wire.Renewed];
  Resize: [wire.Resize, wire.Resized];
  Settle: [wire.Settle, wire.Held];
  Write: [wire.Write, wire.Written[]];
}

export type CommandName = keyof Commands;
/** A command without its name, which the call gives, and its id, which the client makes. */
export type Body<C extends CommandName> = Omit<Commands[C][0], "type" | "id">;
/** A command of a step. */
export type Step = { [C in CommandName]: { type: C } & Body<C> }[CommandName];

/** Commands that change nothing need no id. */
const READS = new Set<CommandName>(["Browse", "Changes", "Count", "Counts", "Groups", "Leases", "Length", "Look", "Names", "Read"]);

export interface Options {
  /** The token that the server asks for. */
  token?: string;
  /** How long commands are tried; see `PATIENCE`. */
  patience?: Partial<Patience>;
  /** What sends requests, by default the global `fetch`. */
  fetch?: typeof fetch;
}

export interface Call {
  /** Ends the tries. A read is cut off at once; a command that may have been done is tried for five more seconds, to find out. */
  signal?: AbortSignal;
}

/** A client of one server; it keeps no connection of its own, so there is nothing to close. */
export class Holdfast {
  readonly url: string;
  readonly #token: string | undefined;
  readonly #patience: Patience;
  readonly #fetch: typeof fetch;

  /** `url` is that of the server, with `/ns/NAME` for a namespace. */
  constructor(url: string, options: Options = {}) {
    this.url = url.replace(/\/+$/, "");
    this.#token = options.token;
    this.#patience = { ...PATIENCE, ...options.patience };
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** Execute one command. It takes effect once, however often it has to be sent. */
  async execute<C extends CommandName>(name: C, body: Body<C>, call: Call = {}): Promise<Commands[C][1]> {
    return (await this.#command(`/v1/${name.toLowerCase()}`, body, READS.has(name), call)) as Commands[C][1];
  }

  /** Execute several commands as one step: all of them or none. The answers come in the same order. */
  async together(steps: readonly Step[], call: Call = {}): Promise<unknown[]> {
    const isRead = steps.every(({ type }) => READS.has(type));
    return (await this.#command("/v1/together", { commands: steps }, isRead, call)) as unknown[];
  }

  /** What the server is, and what its store promises. */
  about(): Promise<wire.About> {
    return this.get("/v1/about");
  }

  queue<T = unknown>(name: string): Queue<T> {
    return new Queue<T>(this, name);
  }

  dict<V = unknown>(name: string): Dict<V> {
    return new Dict<V>(this, name);
  }

  lock(name: string, options: LockOptions = {}): Lock {
    return new Lock(this, name, options);
  }

  /** Follow a topic (`queue:NAME`, `dict:NAME`, `lease::NAME`); it goes on after lost connections and misses nothing. */
  watch(topic: string, options: WatchOptions = {}): AsyncGenerator<wire.Event> {
    return watch((path, init) => this.request(path, init), topic, options);
  }

  /** The topics that may have changed, again and again; `watch:queue:NAME` has a hint with every event of a queue. */
  hints(topics: Iterable<string> | Marks, signal: AbortSignal): AsyncGenerator<string[]> {
    return hints((path, init) => this.request(path, init), topics, signal);
  }

  /** Wait for a hint on a topic behind its mark, for so long at most. */
  hinted(topic: string, marks: Marks, timeoutS: number, signal?: AbortSignal): Promise<void> {
    return hinted((path, init) => this.request(path, init), topic, marks, timeoutS, signal);
  }

  /** A job, for looking at it and steering it. */
  job(queue: string, id: string): Job {
    return new Job(this, queue, id);
  }

  /** The schedules whose names begin so, with their last and next runs, behind a name and up to a limit of 1,000. */
  schedules(prefix = "", page: { after?: string; limit?: number } = {}): Promise<wire.ScheduleStatus[]> {
    const after = page.after === undefined ? {} : { after: page.after };
    return this.get(`/v1/schedules?${new URLSearchParams({ prefix, limit: String(page.limit ?? 1_000), ...after })}`);
  }

  /** Pause a schedule, or let it go on, or put a run of it now. */
  async steerSchedule(name: string, act: "pause" | "resume" | "run", reason = ""): Promise<void> {
    await this.post(`/v1/schedules/${encodeURIComponent(name)}/${act}`, act === "pause" ? { reason } : {});
  }

  /** What up to 20 queues did in the last seconds: the rates of each, and the course of all together. */
  activity(queues: readonly string[], sinceS = 3_600, tasks = false): Promise<wire.Activity> {
    return this.post("/v1/activity", { queues, since_s: sinceS, ...(tasks && { tasks }) });
  }

  /** What a route answers. */
  async get<T>(path: string): Promise<T> {
    return (await answered((signal) => this.request(path, { signal }), this.#patience)) as T;
  }

  /** What a route that is no command answers to a body. */
  async post<T>(path: string, body: unknown): Promise<T> {
    return (await this.#post(path, body, true, {})) as T;
  }

  /** Send one request, with the token. */
  request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.#token !== undefined) headers.set("authorization", `Bearer ${this.#token}`);
    return this.#fetch(`${this.url}${path}`, { ...init, headers });
  }

  /** What only reads needs no id, for which the server would write. */
  #command(path: string, body: object, isRead: boolean, call: Call): Promise<unknown> {
    return this.#post(path, isRead ? body : { id: newId(), ...body }, isRead, call);
  }

  #post(path: string, body: unknown, isRead: boolean, call: Call): Promise<unknown> {
    const init: RequestInit = { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    return answered((signal) => this.request(path, { ...init, signal }), this.#patience, call.signal, isRead);
  }
}
