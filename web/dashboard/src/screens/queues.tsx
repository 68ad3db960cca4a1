/** All queues, a page at a time. */

import { useState } from "preact/hooks";

import { Badge, Failure, Fields, Pages, Table, age } from "../parts.tsx";
import { allAged, readQueues, topicsOf } from "../queue_counts.ts";
import { to, useClient, useLoaded, useSecondsSince } from "../state.ts";

export function Queues() {
  const client = useClient();
  const [prefix, setPrefix] = useState("");
  const [after, setAfter] = useState<string | null>(null);
  const { data, error } = useLoaded(() => readQueues(client, { prefix, after }), `queues ${prefix} ${after}`, (found) => topicsOf(found.rows));
  const rows = allAged(data?.rows ?? [], useSecondsSince(data)).map(({ settings, stats }) => [
    <a href={to("queues", settings.name)}>{settings.name}</a>,
    stats.ready ?? 0,
    stats.delayed || "",
    stats.leased ?? 0,
    stats.buffered || "",
    stats.dead ? <a class="bad" href={to("queues", settings.name, "dead")}>{stats.dead.toLocaleString("en")}</a> : "",
    age(stats.oldest_ready_s),
    <>
      {settings.paused && <Badge kind="warn">paused</Badge>}
      {settings.policy?.groups && <Badge kind="info">{settings.policy.groups} groups</Badge>}
      {settings.policy?.limit != null && <Badge>limit {settings.policy.limit}</Badge>}
    </>,
  ]);
  return (
    <>
      <h1>Queues</h1>
      <Failure error={error} />
      <Fields button="Search" onSubmit={(fields) => (setAfter(null), setPrefix(fields["prefix"] ?? ""))}>
        <label>Name begins with <input name="prefix" data-search /></label>
      </Fields>
      {data && <Table heads={["queue", "ready", "delayed", "in work", "buffered", "dead", "oldest ready", "settings"]} rows={rows} empty="No queues." />}
      <Pages after={after} next={data?.more && data.rows.at(-1)!.settings.name} go={setAfter} />
    </>
  );
}
