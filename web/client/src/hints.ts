/** Hints on many topics with one request: something may have changed, so look again. */

import { HoldfastError, errorOf } from "./errors.ts";
import { pause } from "./retry.ts";
import type * as wire from "./wire.ts";

type Request = (path: string, init: RequestInit) => Promise<Response>;

const WAIT_S = 50;

/** Topics, each with the mark up to which it was heard of; null for one that was not waited on yet. */
export type Marks = Map<string, string | null>;

/**
 * Yield the topics that had a hint since the last time; first, once all of them are waited on, none. Nothing is asked while nothing happens.
 * Topics that the token may not wait on are left out. Ends when the signal is aborted; lost connections are made again, and after one every
 * topic is yielded, as a hint may have been missed. With marks in a map, a later call with the same map goes on where this one ended.
 */
export async function* hints(request: Request, topics: Iterable<string> | Marks, signal: AbortSignal): AsyncGenerator<string[]> {
  const marks: Marks = topics instanceof Map ? topics : new Map([...(topics as Iterable<string>)].map((topic) => [topic, null]));
  let failed = 0;
  while (marks.size && !signal.aborted) {
    try {
      const body = JSON.stringify({ topics: [...marks], timeout_s: WAIT_S });
      const response = await request("/v1/wait", { method: "POST", body, signal, headers: { "content-type": "application/json" } });
      if (!response.ok) throw await errorOf(response);
      const heard = (await response.json()) as wire.Waited;
      for (const topic of heard.refused ?? []) marks.delete(topic);
      const known = heard.topics as unknown as [string, string, number | null][];
      const heardOf = known.filter(([topic]) => marks.get(topic) != null).map(([topic]) => topic);
      const isBegin = known.some(([topic]) => marks.get(topic) === null);
      for (const [topic, mark] of known) if (marks.has(topic)) marks.set(topic, mark);
      failed = 0;
      if (heardOf.length || isBegin) yield heardOf;
    } catch (error) {
      if (signal.aborted) return;
      const passes = error instanceof HoldfastError ? [429, 503].includes(error.status) : error instanceof TypeError;
      if (!passes) throw error;
      try {
        await pause(Math.min(0.2 * 2 ** failed++, 5), signal);
      } catch {
        return;
      }
      yield [...marks.keys()];
    }
  }
}
