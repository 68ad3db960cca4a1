/** Dead letters of all queues, grouped by queue and error. */

import { Failure, Table, short } from "../parts.tsx";
import { readAllQueues, topicsOf } from "../queue_counts.ts";
import { to, useClient, useLoaded } from "../state.ts";
import { errorClass } from "./queue.tsx";

const LOOKED_AT = 200;
const QUEUES = 30;

export function DeadLetters() {
  const client = useClient();
  const { data, error } = useLoaded(
    async () => {
      const { rows } = await readAllQueues(client);
      const dead = rows.filter(({ stats }) => stats.dead).toSorted((a, b) => (b.stats.dead ?? 0) - (a.stats.dead ?? 0)).slice(0, QUEUES);
      const pages = await Promise.all(dead.map(({ settings }) => client.queue(settings.name).browse("dead", { limit: LOOKED_AT })));
      return { rows, dead, pages };
    },
    "dead",
    (found) => topicsOf(found.rows),
  );
  const rows = (data?.dead ?? []).flatMap(({ settings, stats }, place) => {
    const kinds = Map.groupBy(data!.pages[place]!.messages, errorClass);
    const isPart = (stats.dead ?? 0) > LOOKED_AT;
    return [...kinds].map(([kind, all]) => [
      <a href={to("queues", settings.name, "dead")}>{settings.name}</a>,
      kind,
      isPart ? `${all.length} of the first ${LOOKED_AT}` : all.length,
      stats.dead ?? 0,
      <a href={to("message", settings.name, all[0]!.id)}>{short(all[0]!.last_error ?? all[0]!.id, 100)}</a>,
    ]);
  });
  return (
    <>
      <h1>Dead letters</h1>
      <Failure error={error} />
      {data && <Table heads={["queue", "error", "letters", "in the queue", "for instance"]} rows={rows} empty="No dead letters." />}
    </>
  );
}
