/** The workers that are alive, and what each is doing. */

import { useState } from "preact/hooks";

import type { Holdfast, Key, wire } from "../../../client/src/index.ts";
import { Ago, Badge, Failure, Id, Pages, Since, Table, short } from "../parts.tsx";
import { PAGE } from "../queue_counts.ts";
import { to, useClient, useLoaded } from "../state.ts";

export const WORKERS = "holdfast-workers";
/** So many workers are looked at for all queues; of those on a page, so many jobs of so many queues are. */
export const WORKERS_MOST = 200;
const JOBS = 100;
const QUEUES = 10;

export interface Worker {
  name: string;
  queue: string;
  queues?: string[];
  tasks?: string[];
  host: string;
  pid: number;
  concurrency: number;
  execution: string;
  started_at: string;
  seen_at: string;
  health: { state: string; running: number; done: number; failed: number; abandoned?: number; error?: string | null };
}

export async function readWorkers(client: Holdfast): Promise<Worker[]> {
  return (await client.dict<Worker>(WORKERS).entries({ limit: WORKERS_MOST })).map((entry) => entry.value);
}

/** Those of one name: it may have been started again meanwhile. */
async function readWorker(client: Holdfast, name: string): Promise<Worker | undefined> {
  const entries = await client.dict<Worker>(WORKERS).entries({ prefix: [name], limit: WORKERS_MOST });
  return entries.map((entry) => entry.value).toSorted((a, b) => Date.parse(b.started_at) - Date.parse(a.started_at))[0];
}

export function queuesOf(worker: Worker): string[] {
  return worker.queues?.length ? worker.queues : [worker.queue];
}

/** What workers have claimed, as far as one page of their queues goes. */
async function readJobs(client: Holdfast, workers: readonly Worker[]): Promise<wire.Message[]> {
  const queues = [...new Set(workers.filter(({ health }) => health.running).flatMap(queuesOf))].slice(0, QUEUES);
  const limit = Math.floor(JOBS / Math.max(queues.length, 1));
  const pages = await Promise.all(queues.map((queue) => client.queue(queue).browse("leased", { limit })));
  return pages.flatMap((page) => page.messages);
}

function taskOf(job: wire.Message): string {
  return (job.metadata as { task?: string } | null)?.task ?? "";
}

export function Workers() {
  const client = useClient();
  const [after, setAfter] = useState<{ key: Key } | null>(null);
  const { data, error } = useLoaded(
    async () => {
      const { entries, more } = await client.dict<Worker>(WORKERS).page({ limit: PAGE, ...(after && { after: after.key }) });
      const workers = entries.map((entry) => entry.value);
      return { workers, next: more ? { key: entries.at(-1)!.key } : null, jobs: Map.groupBy(await readJobs(client, workers), ({ holder }) => holder ?? "") };
    },
    JSON.stringify(["workers", after]),
    (found) => [`watch:dict:${WORKERS}`, ...new Set(found.workers.flatMap(queuesOf).slice(0, QUEUES).map((queue) => `watch:queue:${queue}`))],
  );
  const rows = (data?.workers ?? []).map((worker) => [
    <a href={to("workers", worker.name)}>{worker.name}</a>,
    <>{queuesOf(worker).map((queue) => <a class="each" href={to("queues", queue)}>{queue}</a>)}</>,
    <Badge kind={worker.health.error ? "bad" : worker.health.state === "working" ? "good" : "warn"}>{worker.health.state}</Badge>,
    <Doing jobs={data!.jobs.get(worker.name) ?? []} />,
    `${worker.health.running} of ${worker.concurrency}`,
    worker.health.done,
    worker.health.failed,
    worker.health.abandoned || "",
    <span class="quiet">{worker.host}, {worker.pid}</span>,
    <Since at={worker.seen_at} />,
    worker.health.error ? <span class="bad">{worker.health.error}</span> : "",
  ]);
  const heads = ["worker", "queues", "state", "doing", "seats", "done", "failed", "over their limit", "host, process", "seen", "error"];
  return (
    <>
      <h1>Workers</h1>
      <p class="quiet">Who is alive, and what each is doing.</p>
      <Failure error={error} />
      {data && <Table heads={heads} rows={rows} empty="No worker is alive." />}
      <Pages after={after} next={data?.next} go={setAfter} />
    </>
  );
}

/** The oldest of its jobs, and how many more there are. */
function Doing({ jobs }: { jobs: readonly wire.Message[] }) {
  const [oldest] = jobs.toSorted((a, b) => (a.since ?? 0) - (b.since ?? 0));
  if (!oldest) return <span class="quiet">nothing</span>;
  return <>{taskOf(oldest)} <a href={to("message", oldest.queue, oldest.id)}><Id id={oldest.id} /></a> for <Ago plain moment={oldest.since} />{jobs.length > 1 && ` and ${jobs.length - 1} more`}</>;
}

export function WorkerScreen({ name }: { name: string }) {
  const client = useClient();
  const { data, error } = useLoaded(
    async () => {
      const worker = await readWorker(client, name);
      const jobs = worker ? await readJobs(client, [worker]) : [];
      return { worker, jobs: jobs.filter((message) => message.holder === name) };
    },
    name,
    (found) => [`watch:dict:${WORKERS}`, ...(found.worker ? queuesOf(found.worker) : []).map((queue) => `watch:queue:${queue}`)],
  );
  const rows = (data?.jobs ?? []).map((job) => [
    <a href={to("message", job.queue, job.id)}><Id id={job.id} /></a>,
    <a href={to("queues", job.queue)}>{job.queue}</a>,
    taskOf(job),
    <Ago moment={job.since} />,
    <Ago moment={job.until} />,
    job.attempts ?? 0,
    <code>{short(job.value)}</code>,
  ]);
  const worker = data?.worker;
  return (
    <>
      <h1>Worker {name}</h1>
      <Failure error={error} />
      {data && !worker && <p class="quiet">It is not alive: it has ended, or it was not heard of for three beats.</p>}
      {worker && <p>Started <Since at={worker.started_at} /> on {worker.host}, process {worker.pid}, {worker.execution}; knows {(worker.tasks ?? []).join(", ") || "one function"}.</p>}
      {worker && <h2>Running now</h2>}
      {worker && <Table heads={["job", "queue", "task", "claimed", "lease until", "attempts", "value"]} rows={rows} empty="Nothing." />}
    </>
  );
}
