/** What every screen shares: the client, the page that the address names, and data that is read again when something changed. */

import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";

import { Holdfast, type HoldfastError } from "../../client/src/index.ts";

export const ClientContext = createContext<Holdfast>(new Holdfast(""));

export function useClient(): Holdfast {
  return useContext(ClientContext);
}

/** The parts of the address behind `#/`. */
export function usePath(): string[] {
  const [path, setPath] = useState(parts());
  useEffect(() => {
    const changed = () => setPath(parts());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return path;
}

function parts(): string[] {
  return location.hash.replace(/^#\//, "").split("/").filter(Boolean).map(decodeURIComponent);
}

/** The address of a screen. */
export function to(...path: string[]): string {
  return `#/${path.map(encodeURIComponent).join("/")}`;
}

export interface Loaded<T> {
  data: T | undefined;
  error: HoldfastError | undefined;
  reload: () => void;
}

/**
 * What `load` gives, read again after `reload`, when the topics have an event, and at the latest after `everyS` seconds if that is given.
 * Nothing is asked while nothing changes.
 */
export function useLoaded<T>(load: () => Promise<T>, key: string, topics: readonly string[] = [], everyS?: number): Loaded<T> {
  const client = useClient();
  const [data, setData] = useState<T>();
  const [error, setError] = useState<HoldfastError>();
  const [count, setCount] = useState(0);
  const reload = () => setCount((before) => before + 1);
  useEffect(() => {
    let current = true;
    load().then(
      (found) => current && (setData(found), setError(undefined)),
      (failed: HoldfastError) => current && setError(failed),
    );
    return () => {
      current = false;
    };
  }, [key, count]);
  useEffect(() => {
    const end = new AbortController();
    for (const topic of topics) void follow(client, topic, end.signal, reload);
    const timer = everyS === undefined ? undefined : setInterval(() => document.visibilityState === "visible" && reload(), everyS * 1000);
    return () => {
      end.abort();
      clearInterval(timer);
    };
  }, [key]);
  return { data, error, reload };
}

/** Call back soon after each event of a topic, once for many that come together. */
async function follow(client: Holdfast, topic: string, signal: AbortSignal, changed: () => void): Promise<void> {
  let pending: ReturnType<typeof setTimeout> | undefined;
  try {
    for await (const _ of client.watch(topic, { signal })) {
      pending ??= setTimeout(() => {
        pending = undefined;
        if (!signal.aborted) changed();
      }, 300);
    }
  } catch {
    // Not allowed, or the events are gone: the screen shows what it read.
  }
}
