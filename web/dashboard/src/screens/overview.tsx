/** The first screen: sizes, what needs attention, and how it came about. */

import type { ComponentChildren } from "preact";

import { Chart } from "../chart.tsx";
import { Failure, Table, Tile, age } from "../parts.tsx";
import { type QueueRow, readAllQueues, sampled, sumsOf, topicsOf } from "../queue_counts.ts";
import { to, useAbout, useClient, useLoaded } from "../state.ts";
import { type Worker, WORKERS, queuesOf, readWorkers } from "./workers.tsx";

const SURVIVES = { power: "a loss of power", process: "the death of every process", nothing: "no restart" };
const LATE_S = 300;

export function Overview() {
  const client = useClient();
  const { guarantees } = useAbout();
  const { data, error } = useLoaded(
    async () => {
      const [queues, workers] = await Promise.all([readAllQueues(client), readWorkers(client)]);
      const sums = sumsOf(queues.rows);
      return { ...queues, workers, sums, history: sampled("all", sums) };
    },
    "overview",
    (found) => [`watch:dict:${WORKERS}`, ...topicsOf(found.rows)],
  );
  if (!data) return <><h1>Overview</h1><Failure error={error} /></>;
  const { sums, rows, workers, history } = data;
  const oldest = rows.toSorted((a, b) => (b.stats.oldest_ready_s ?? 0) - (a.stats.oldest_ready_s ?? 0))[0];
  const running = workers.reduce((total, worker) => total + worker.health.running, 0);
  const seats = workers.reduce((total, worker) => total + worker.concurrency, 0);
  const values = (field: "ready" | "leased" | "dead") => history.sums.map((each) => each[field]);
  return (
    <>
      <h1>Overview</h1>
      <Failure error={error} />
      <div class="tiles">
        <Tile name="ready" value={sums.ready} href={to("queues")}>in {rows.length}{data.more ? "+" : ""} queues</Tile>
        <Tile name="in work" value={sums.leased} href={to("workers")}>{running} of {seats} seats taken</Tile>
        <Tile name="delayed" value={sums.delayed} />
        <Tile name="dead letters" value={sums.dead} bad={sums.dead > 0} href={to("dead")} />
        <Tile name="oldest ready" value={age(oldest?.stats.oldest_ready_s)} {...(oldest?.stats.oldest_ready_s ? { href: to("queues", oldest.settings.name) } : {})}>
          {oldest?.stats.oldest_ready_s ? oldest.settings.name : ""}
        </Tile>
        <Tile name="workers" value={workers.length} href={to("workers")}>alive</Tile>
      </div>
      <h2>Needs attention</h2>
      <Attention rows={rows} workers={workers} />
      <div class="charts">
        <Chart title="Messages, since this page was opened" stepped times={history.times} lines={[{ name: "ready", values: values("ready"), color: "accent" }, { name: "in work", values: values("leased"), color: "good" }]} />
        <Chart title="Dead letters, since this page was opened" stepped times={history.times} lines={[{ name: "dead", values: values("dead"), color: "bad" }]} />
      </div>
      <h2>Busiest queues</h2>
      <Busiest rows={rows} />
      <p class="quiet">{guarantees.engine}; acknowledged work survives {SURVIVES[guarantees.survives]}. <a href={to("health")}>All guarantees</a></p>
    </>
  );
}

/** What is stuck, since when, and where to go. */
function Attention({ rows, workers }: { rows: QueueRow[]; workers: Worker[] }) {
  const served = new Set(workers.flatMap(queuesOf));
  const found: [ComponentChildren, ComponentChildren, ComponentChildren][] = [];
  for (const { settings, stats } of rows) {
    const link = (state: string) => <a href={to("queues", settings.name, state)}>{settings.name}</a>;
    const ready = stats.ready ?? 0;
    if (stats.dead) found.push([link("dead"), `${stats.dead.toLocaleString("en")} dead letters, the oldest for ${age(stats.oldest_dead_s)}`, "look at the error, then redrive or remove them"]);
    if (settings.paused && ready) found.push([link("ready"), `paused, ${ready.toLocaleString("en")} wait`, "resume it"]);
    else if (ready && !served.has(settings.name) && !stats.leased) found.push([link("ready"), `${ready.toLocaleString("en")} wait, and no living worker serves it`, "start a worker"]);
    else if (ready && (stats.oldest_ready_s ?? 0) > LATE_S) found.push([link("ready"), `the oldest waits for ${age(stats.oldest_ready_s)}`, "add workers, or see who holds what is in work"]);
  }
  for (const worker of workers) if (worker.health.error) found.push([<a href={to("workers")}>{worker.name}</a>, `worker: ${worker.health.error}`, "see its log"]);
  return <Table heads={["where", "what", "what to do"]} rows={found.slice(0, 50)} empty="Nothing: no dead letters, no queue without a worker, none that waits for long." />;
}

function Busiest({ rows }: { rows: QueueRow[] }) {
  const weight = ({ stats }: QueueRow) => (stats.ready ?? 0) + (stats.leased ?? 0);
  const busy = rows.filter((row) => weight(row)).toSorted((a, b) => weight(b) - weight(a)).slice(0, 10);
  const cells = busy.map(({ settings, stats }) => [<a href={to("queues", settings.name)}>{settings.name}</a>, stats.ready ?? 0, stats.leased ?? 0, stats.dead ?? 0, age(stats.oldest_ready_s)]);
  return <Table heads={["queue", "ready", "in work", "dead", "oldest ready"]} rows={cells} empty="No queue has work." />;
}
