/** Hints on many topics with one request: something may have changed, so look again. */

import { HoldfastError, errorOf } from "./errors.ts";
import { isLost, pause, within } from "./retry.ts";
import type * as wire from "./wire.ts";

type Request = (path: string, init: RequestInit) => Promise<Response>;

const WAIT_S = 50;
/** How often it is looked where nothing can be waited on, and after a lost connection. */
const POLL_S = 1;
const AGAIN_S = 0.2;
/** How much later than asked for an answer may come. */
const LATE_S = 15;

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
      const heard = await heardOf(request, marks, WAIT_S, signal);
      failed = 0;
      if (heard) yield heard;
    } catch (error) {
      if (signal.aborted) return;
      if (!passes(error)) throw error;
      try {
        await pause(Math.min(0.2 * 2 ** failed++, 5), signal);
      } catch {
        return;
      }
      yield [...marks.keys()];
    }
  }
}

/** Wait for a hint on a topic, for so long at most. Something may have changed where it returns, also after a lost connection. */
export async function hinted(request: Request, topic: string, marks: Marks, timeoutS: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    if (!marks.size) marks.set(topic, null);
    await heardOf(request, marks, Math.min(timeoutS, WAIT_S), signal);
    if (!marks.size) await pause(Math.min(timeoutS, POLL_S), signal); // The token may not wait on it.
  } catch (error) {
    if (signal?.aborted) return;
    if (!passes(error)) throw error;
    await pause(Math.min(timeoutS, AGAIN_S), signal).catch(() => undefined);
  }
}

/** One request: the topics with a hint behind their marks, none if a mark was taken, undefined if the time was over. */
async function heardOf(request: Request, marks: Marks, timeoutS: number, signal: AbortSignal | undefined): Promise<string[] | undefined> {
  const body = JSON.stringify({ topics: [...marks], timeout_s: timeoutS });
  const waited = await within(timeoutS + LATE_S, signal, async (one) => {
    const response = await request("/v1/wait", { method: "POST", body, signal: one, headers: { "content-type": "application/json" } });
    if (!response.ok) throw await errorOf(response);
    return (await response.json()) as wire.Waited;
  });
  for (const topic of waited.refused ?? []) marks.delete(topic);
  const known = waited.topics as unknown as [string, string, number | null][];
  const heard = known.filter(([topic]) => marks.get(topic) != null).map(([topic]) => topic);
  const isBegin = known.some(([topic]) => marks.get(topic) === null);
  for (const [topic, mark] of known) if (marks.has(topic)) marks.set(topic, mark);
  return heard.length || isBegin ? heard : undefined;
}

/** Whether the wait can be made again. */
function passes(error: unknown): boolean {
  return error instanceof HoldfastError ? [429, 503].includes(error.status) : isLost(error);
}
