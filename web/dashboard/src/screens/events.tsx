/** Events of a topic as they are written. */

import { useEffect, useState } from "preact/hooks";

import type { wire } from "../../../client/src/index.ts";
import { Badge, Facts, Fields, type Kind, Table, Token, short } from "../parts.tsx";
import { PAGE } from "../queue_counts.ts";
import { to, useClient, useLoaded } from "../state.ts";

const KEPT = 200;

const LOOKS: Record<string, Kind> = { put: "info", claimed: "info", settled: "good", expired: "bad", buried: "bad", moved: "warn", cleared: "warn", configured: "warn" };

/** Queues and dicts to choose from. */
function Topics() {
  const client = useClient();
  const { data } = useLoaded(async () => {
    const [queues, dicts] = await Promise.all((["queue", "dict"] as const).map((kind) => client.execute("Names", { kind, limit: PAGE }).catch(() => ({ settings: [] }))));
    return [...queues!.settings, ...dicts!.settings];
  }, "topics");
  const links = (kind: string) => (data ?? []).filter((one) => one.kind === kind).map((one) => <a class="each" href={to("events", `${kind}:${one.name}`)}>{one.name}</a>);
  if (data && !data.length) return <p class="quiet">There are no queues and no dicts yet.</p>;
  const listed = (kind: string) => (links(kind).length ? links(kind) : "");
  return data ? <Facts facts={[["queues", listed("queue")], ["dicts", listed("dict")]]} /> : null;
}

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
  const rows = seen.map((event) => [
    <time class="moment" title={new Date(event.at / 1000).toISOString()}>{new Date(event.at / 1000).toLocaleTimeString("en-GB")}</time>,
    <Badge kind={LOOKS[event.event]}>{event.event}</Badge>,
    <code>{short(event.data, 160)}</code>,
    <Token token={event.index} />,
  ]);
  return (
    <>
      <h1>Live events</h1>
      <Fields button="Follow" onSubmit={(fields) => (location.hash = to("events", fields["topic"] ?? ""))}>
        <label>Topic, as in queue:NAME, dict:NAME or lease::["lock","NAME"] <input name="topic" required key={topic} defaultValue={topic ?? ""} data-search /></label>
      </Fields>
      {error && <p class="note" role="alert">{error}</p>}
      {!topic && <Topics />}
      {topic && <p class="quiet">The newest {KEPT} at most, as they are written.</p>}
      {topic && <Table heads={["at", "event", "facts", "index"]} rows={rows} empty="Nothing yet." />}
    </>
  );
}
