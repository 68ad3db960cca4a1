/** Events of a topic as they are written. */

import { useEffect, useState } from "preact/hooks";

import type { wire } from "../../../client/src/index.ts";
import { Fields, Table, short } from "../parts.tsx";
import { to, useClient } from "../state.ts";

const KEPT = 200;

export function Events({ topic }: { topic: string | undefined }) {
  const client = useClient();
  const [seen, setSeen] = useState<wire.Event[]>([]);
  const [error, setError] = useState<string>();
  useEffect(() => {
    setSeen([]);
    setError(undefined);
    if (!topic) return;
    const end = new AbortController();
    let arrived: wire.Event[] = [];
    const show = setInterval(() => {
      if (!arrived.length) return;
      const newest = arrived.reverse();
      arrived = [];
      setSeen((before) => [...newest, ...before].slice(0, KEPT));
    }, 250);
    void (async () => {
      try {
        for await (const event of client.watch(topic, { signal: end.signal })) arrived = [...arrived, event].slice(-KEPT);
      } catch (failed) {
        setError((failed as Error).message);
      }
    })();
    return () => {
      clearInterval(show);
      end.abort();
    };
  }, [topic]);
  // The wire has moments of the wall clock here.
  const rows = seen.map((event) => [event.index, new Date(event.at / 1000).toLocaleString(), event.event, <code>{short(event.data, 160)}</code>]);
  return (
    <>
      <h1>Live events</h1>
      <Fields button="Follow" onSubmit={(fields) => (location.hash = to("events", fields["topic"] ?? ""))}>
        <label>Topic, as in queue:NAME, dict:NAME or lease::["lock","NAME"] <input name="topic" required value={topic ?? ""} data-search /></label>
      </Fields>
      {error && <p class="note" role="alert">{error}</p>}
      {topic && <Table heads={["index", "at", "event", "facts"]} rows={rows} empty="Nothing yet." />}
    </>
  );
}
