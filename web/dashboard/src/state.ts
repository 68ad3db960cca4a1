/** What every screen shares: the session, the page that the address names, and data that is read again when something changed. */

import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";

import { Holdfast, type HoldfastError, type wire } from "../../client/src/index.ts";
import { Live } from "./live.ts";
import { allows } from "./scopes.ts";

export interface Session {
  client: Holdfast;
  about: wire.About;
  live: Live;
  isSignedIn: boolean;
}

export const SessionContext = createContext<Session>(undefined as never);

export function useClient(): Holdfast {
  return useContext(SessionContext).client;
}

export function useAbout(): wire.About {
  return useContext(SessionContext).about;
}

/** What to add to a moment of the store to get one of the wall clock, in microseconds. */
export function useOffset(): number {
  return useAbout().wall_offset_us;
}

/** Says whether the token allows a verb on a thing. */
export function useMay(): (kind: "queue" | "dict" | "lease" | "server", name: string, verb: string) => boolean {
  const { scopes } = useAbout();
  return (kind, name, verb) => allows(scopes ?? [], kind, name, verb);
}

/** The parts of the address behind `#/`. */
export function usePath(): string[] {
  const [path, setPath] = useState(parts());
  useEffect(() => {
    const changed = () => setPath(parts());
    addEventListener("hashchange", changed);
    changed(); // It may have changed before anybody listened.
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

const LEAST_MS = 700;

/**
 * What `load` gives, read again after `reload` and soon after a change of the topics, which may depend on what was read. Nothing is asked
 * while nothing changes, nor while the page is hidden.
 */
export function useLoaded<T>(load: () => Promise<T>, key: string, topics: readonly string[] | ((data: T) => readonly string[]) = [], leastMs = LEAST_MS): Loaded<T> {
  const { live } = useContext(SessionContext);
  const [data, setData] = useState<{ key: string; found: T }>();
  const [error, setError] = useState<HoldfastError>();
  const [count, setCount] = useState(0);
  const newest = useRef(load);
  newest.current = load;
  const followed = typeof topics === "function" ? (data ? topics(data.found) : []) : topics;
  const reload = () => setCount((before) => before + 1);
  useEffect(() => {
    let current = true;
    newest.current().then(
      (found) => current && (setData({ key, found }), setError(undefined)),
      (failed: HoldfastError) => current && setError(failed),
    );
    return () => {
      current = false;
    };
  }, [key, count]);
  useEffect(() => followVisibly(live, followed, reload, leastMs), [key, followed.join("\n")]);
  return { data: data?.key === key ? data.found : undefined, error, reload };
}

/** Seconds since this came, kept true while it is shown: where everything stands still no change says how late it is. */
export function useSecondsSince(data: unknown): number {
  const [, setTick] = useState(0);
  const came = useRef({ data, at: performance.now() });
  if (came.current.data !== data) came.current = { data, at: performance.now() };
  useEffect(() => {
    const timer = setInterval(() => setTick((tick) => tick + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  return (performance.now() - came.current.at) / 1000;
}

/** Call back at most so often, and for what happened while the page was hidden once it is seen again. */
function followVisibly(live: Live, topics: readonly string[], changed: () => void, leastMs: number): (() => void) | undefined {
  if (!topics.length) return undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isMissed = false;
  const soon = () => {
    if (document.visibilityState === "hidden") isMissed = true;
    else timer ??= setTimeout(() => ((timer = undefined), changed()), leastMs);
  };
  const shown = () => {
    if (isMissed && document.visibilityState === "visible") ((isMissed = false), soon());
  };
  document.addEventListener("visibilitychange", shown);
  // What changed between the first look and the first wait is found by a second look.
  const end = live.follow(topics, soon, soon);
  return () => {
    end();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", shown);
  };
}
