/** Dead letters of all queues, grouped by queue and error. */

import type { wire } from "../../../client/src/index.ts";
import { Badge, Failure, Since, Table, short } from "../parts.tsx";
import { readAllQueues, topicsOf } from "../queue_counts.ts";
import { to, useClient, useLoaded, useOffset } from "../state.ts";
import { BulkActs } from "./bulk.tsx";
import { errorClass } from "./queue.tsx";

/** So many letters are read in all, of so many queues: those that have most. */
const LOOKED_AT = 200;
const QUEUES = 20;

/** A class that is longer is none: the server does not search for it. */
const NAME_MOST = 150;

export function DeadLetters() {
  const client = useClient();
  const offset = useOffset();
  const { data, error, reload } = useLoaded(
    async () => {
      const { rows } = await readAllQueues(client);
      const dead = rows.filter(({ stats }) => stats.dead).toSorted((a, b) => (b.stats.dead ?? 0) - (a.stats.dead ?? 0)).slice(0, QUEUES);
      const limit = Math.floor(LOOKED_AT / Math.max(dead.length, 1));
      const pages = await Promise.all(dead.map(({ settings }) => client.queue(settings.name).browse("dead", { limit })));
      return { rows, dead, pages, limit };
    },
    "dead",
    (found) => topicsOf(found.rows),
  );
  const kinds = (data?.dead ?? []).flatMap(({ settings, stats }, place) => {
    const found = Map.groupBy(data!.pages[place]!.messages, errorClass);
    return [...found].toSorted((a, b) => b[1].length - a[1].length).map(([kind, all]) => ({ name: settings.name, dead: stats.dead ?? 0, kind, all }));
  });
  const rows = kinds.map(({ name, dead, kind, all }) => [
    <a href={to("queues", name, "dead")}>{name}</a>,
    <Badge kind="bad">{short(kind, 60)}</Badge>,
    dead > data!.limit ? `${all.length} of the first ${data!.limit}` : all.length,
    dead,
    <Since at={(oldestOf(all) + offset) / 1000} />,
    <a class="text" href={to("message", name, all[0]!.id)}>{short(all[0]!.last_error ?? all[0]!.id, 110)}</a>,
    kind === NO_ERROR || kind.length > NAME_MOST ? "" : <BulkActs name={name} state="dead" which={{ error_class: kind }} what={`all dead letters with ${kind}`} done={reload} />,
  ]);
  const hidden = (data?.rows.filter(({ stats }) => stats.dead).length ?? 0) - (data?.dead.length ?? 0);
  return (
    <>
      <h1>Dead letters</h1>
      <p class="quiet">By queue and error. Redrive what a fix has made good, remove what nobody needs.</p>
      <Failure error={error} />
      {data && <Table heads={["queue", "error", "letters", "in the queue", "oldest", "for instance", "actions"]} rows={rows} keys={kinds.map(({ name, kind }) => `${name}\n${kind}`)} empty="No dead letters." />}
      {hidden > 0 && <p class="quiet">{hidden} more queues have fewer dead letters: see <a href={to("queues")}>Queues</a>.</p>}
    </>
  );
}

const NO_ERROR = errorClass({ queue: "", id: "", value: null });

function oldestOf(messages: readonly wire.Message[]): number {
  return Math.min(...messages.map((message) => message.dead_at ?? Infinity));
}
