/** Server-Sent Events with resume: after a lost connection the watch goes on behind the last event. */

import { HoldfastError, errorOf } from "./errors.ts";
import { Silence, isLost, pause } from "./retry.ts";
import type * as wire from "./wire.ts";

export interface WatchOptions {
  /** Begin behind this index; -1, the default, is the oldest event that is still there. */
  after?: number;
  signal?: AbortSignal;
}

/** The server sends something every 15 seconds, if only a comment. */
const SILENT_S = 45;

type Request = (path: string, init: RequestInit) => Promise<Response>;

/** Follow a topic. Ends when the signal is aborted; throws `Compacted` if the events asked for are gone. */
export async function* watch(request: Request, topic: string, options: WatchOptions = {}): AsyncGenerator<wire.Event> {
  let after = options.after ?? -1;
  for (let failed = 0; !options.signal?.aborted; ) {
    const silence = new Silence(SILENT_S, options.signal);
    try {
      const path = `/v1/watch?topic=${encodeURIComponent(topic)}&after=${after}`;
      const response = await request(path, { signal: silence.signal, headers: { accept: "text/event-stream" } });
      if (!response.ok) throw await errorOf(response);
      for await (const event of events(response, silence)) {
        failed = 0;
        after = event.index;
        yield event;
      }
    } catch (error) {
      if (options.signal?.aborted) return;
      const passes = error instanceof HoldfastError ? [429, 503].includes(error.status) : isLost(error);
      if (!passes) throw error;
    } finally {
      silence.end();
    }
    try {
      await pause(Math.min(0.1 * 2 ** failed++, 2), options.signal);
    } catch {
      return;
    }
  }
}

/** The events of one response, until it ends. */
async function* events(response: Response, silence: Silence): AsyncGenerator<wire.Event> {
  const decoder = new TextDecoder();
  const reader = response.body!.getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      silence.heard();
      text += decoder.decode(value, { stream: true });
      const parts = text.split("\n\n");
      text = parts.pop()!;
      for (const part of parts) {
        const data = part.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
        if (data) yield JSON.parse(data) as wire.Event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
