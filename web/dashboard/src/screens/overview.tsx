/** The first screen: what needs attention, sizes, and how they came about. */

import { useMemo } from "preact/hooks";

import { type Holdfast, NotAllowed, type wire } from "../../../client/src/index.ts";
import { ActivityCharts, QUEUES_MOST, ratesOf, useActivity } from "../activity.tsx";
import { Chart } from "../chart.tsx";
import { Failure, Table, Tile, age, perMinute, percent } from "../parts.tsx";
import { PAGE, type QueueRow, type Sums, allAged, readAllQueues, sampled, sumsOf, topicsOf } from "../queue_counts.ts";
import { to, useAbout, useClient, useLoaded, useSecondsSince } from "../state.ts";
import { Attention } from "./attention.tsx";
import { SCHEDULES } from "./schedules.tsx";
import { WORKERS, WORKERS_MOST, readWorkers } from "./workers.tsx";

export const SURVIVES = { power: "a loss of power", process: "the death of every process", nothing: "no restart" };

/** What the token may see of it; nothing if it may not. */
async function ifAllowed<T>(read: Promise<T[]>): Promise<T[]> {
  try {
    return await read;
  } catch (failed) {
    if (failed instanceof NotAllowed) return [];
    throw failed;
  }
}

async function readHeld(client: Holdfast): Promise<wire.Holding[]> {
  return (await client.execute("Leases", { dict: null, prefix: "", limit: PAGE })).held;
}

export function Overview() {
  const client = useClient();
  const { guarantees } = useAbout();
  const { data, error } = useLoaded(
    async () => {
      const [queues, workers, held, schedules] = await Promise.all([
        readAllQueues(client),
        readWorkers(client),
        ifAllowed(readHeld(client)),
        ifAllowed(client.schedules("", { limit: PAGE })),
      ]);
      const sums = sumsOf(queues.rows);
      return { ...queues, workers, held, schedules, sums, history: sampled("all", sums) };
    },
    "overview",
    (found) => [`watch:dict:${WORKERS}`, `watch:dict:${SCHEDULES}`, ...topicsOf(found.rows)],
  );
  const elapsedS = useSecondsSince(data);
  const busiest = useMemo(() => busiestOf(data?.rows ?? []), [data]);
  const course = useActivity(busiest.map(({ settings }) => settings.name).toSorted()).data;
  if (!data) return <><h1>Overview</h1><Failure error={error} /></>;
  const { sums, workers, history } = data;
  const rows = allAged(data.rows, elapsedS);
  const oldest = rows.toSorted((a, b) => (b.stats.oldest_ready_s ?? 0) - (a.stats.oldest_ready_s ?? 0))[0];
  const running = workers.reduce((total, worker) => total + worker.health.running, 0);
  const seats = workers.reduce((total, worker) => total + worker.concurrency, 0);
  const rates = course && ratesOf(course.activity);
  const of = rows.length > QUEUES_MOST ? `of the ${QUEUES_MOST} busiest queues` : "of all queues";
  return (
    <>
      <h1>Overview</h1>
      <Failure error={error} />
      <h2>Needs attention</h2>
      <Attention rows={rows} workers={workers} held={data.held} schedules={data.schedules} />
      <div class="tiles">
        <Tile name="ready" value={sums.ready} href={to("queues")}>in {rows.length}{data.more ? "+" : ""} {rows.length === 1 ? "queue" : "queues"}</Tile>
        <Tile name="in work" value={sums.leased} href={to("workers")}>{seats ? `${running} of ${seats} seats taken` : "no worker alive"}</Tile>
        <Tile name="oldest ready" value={age(oldest?.stats.oldest_ready_s)} href={oldest?.stats.oldest_ready_s ? to("queues", oldest.settings.name) : undefined}>
          {oldest?.stats.oldest_ready_s ? `in ${oldest.settings.name}` : "nothing waits"}
        </Tile>
        <Tile name="done/min" value={rates ? perMinute(rates.donePerS) : rows.length ? "…" : 0}>{course && `last ${age(course.activity.window_s)}`}</Tile>
        <Tile name="failures" value={rates ? percent(rates.failedShare) : rows.length ? "…" : "–"} kind={rates?.failedShare ? "bad" : undefined}>of what ended</Tile>
        <Tile name="dead letters" value={sums.dead} kind={sums.dead ? "bad" : undefined} href={to("dead")}>{sums.dead ? "by error" : "none"}</Tile>
        <Tile name="delayed" value={sums.delayed}>not due yet</Tile>
        <Tile name="workers" value={workers.length < WORKERS_MOST ? workers.length : `${WORKERS_MOST}+`} kind={workers.length ? undefined : "warn"} href={to("workers")}>alive</Tile>
      </div>
      <div class="charts">
        {course && <ActivityCharts course={course} of={of} />}
        <SizeCharts history={history} />
      </div>
      <h2>Busiest queues</h2>
      <Busiest rows={allAged(busiest, elapsedS)} rates={course?.activity.queues ?? {}} />
      <p class="quiet">{guarantees.engine}; acknowledged work survives {SURVIVES[guarantees.survives]}. <a href={to("health")}>All guarantees</a></p>
    </>
  );
}

/** Sizes as this page has seen them; the last goes on until now. */
function SizeCharts({ history }: { history: { times: number[]; sums: Sums[] } }) {
  const times = useMemo(() => [...history.times, Math.max(Date.now() / 1000, history.times.at(-1)! + 0.001)], [history]); // Two of one moment would be drawn as a day.
  const values = (field: keyof Sums) => [...history.sums, history.sums.at(-1)!].map((each) => each[field]);
  return (
    <>
      <Chart title="Backlog, since this page was opened" stepped times={times} lines={[{ name: "ready", values: values("ready"), color: "accent" }, { name: "in work", values: values("leased"), color: "good" }]} />
      <Chart title="Oldest ready, since this page was opened" stepped times={times} say={age} lines={[{ name: "waits for", values: values("oldest_s"), color: "warn" }]} />
    </>
  );
}

function busiestOf(rows: readonly QueueRow[]): QueueRow[] {
  const weight = ({ stats }: QueueRow) => (stats.ready ?? 0) + 10 * (stats.leased ?? 0);
  return rows.toSorted((a, b) => weight(b) - weight(a)).slice(0, QUEUES_MOST);
}

function Busiest({ rows, rates }: { rows: QueueRow[]; rates: Record<string, wire.QueueRates> }) {
  const cells = rows.map(({ settings, stats }) => {
    const of = rates[settings.name];
    return [
      <a href={to("queues", settings.name)}>{settings.name}</a>,
      stats.ready ?? 0,
      stats.leased ?? 0,
      stats.dead ?? 0,
      age(stats.oldest_ready_s),
      of ? perMinute(of.done_per_s ?? 0) : "…",
      percent(of?.failed_share),
      age(of?.p95_wait_s),
      age(of?.p95_duration_s),
    ];
  });
  return <Table heads={["queue", "ready", "in work", "dead", "oldest ready", "done/min", "failed", "wait p95", "duration p95"]} rows={cells} empty="No queues yet: put a message into one." />;
}
