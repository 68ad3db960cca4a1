/** The workers that are alive, and what each is doing. */

import type { Holdfast } from "../../../client/src/index.ts";
import { Ago, Badge, Failure, Since, Table, short } from "../parts.tsx";
import { to, useClient, useLoaded } from "../state.ts";

export const WORKERS = "holdfast-workers";
const JOBS = 100;

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
  health: { state: string; running: number; done: number; failed: number; error?: string | null };
}

export async function readWorkers(client: Holdfast): Promise<Worker[]> {
  return (await client.dict<Worker>(WORKERS).entries()).map((entry) => entry.value);
}

export function queuesOf(worker: Worker): string[] {
  return worker.queues?.length ? worker.queues : [worker.queue];
}

export function Workers() {
  const client = useClient();
  const { data, error } = useLoaded(() => readWorkers(client), "workers", [`watch:dict:${WORKERS}`]);
  const rows = (data ?? []).map((worker) => [
    <a href={to("workers", worker.name)}>{worker.name}</a>,
    <>{queuesOf(worker).map((queue) => <a class="each" href={to("queues", queue)}>{queue}</a>)}</>,
    `${worker.host}, ${worker.pid}`,
    <Badge {...(worker.health.error ? { kind: "bad" as const } : { kind: "good" as const })}>{worker.health.state}</Badge>,
    `${worker.health.running} of ${worker.concurrency}`,
    worker.health.done,
    worker.health.failed,
    <Since at={worker.seen_at} />,
    worker.health.error ?? "",
  ]);
  const heads = ["worker", "queues", "host, process", "state", "running", "done", "failed", "seen", "error"];
  return <><h1>Workers</h1><Failure error={error} />{data && <Table heads={heads} rows={rows} empty="No worker is alive." />}</>;
}

export function WorkerScreen({ name }: { name: string }) {
  const client = useClient();
  const { data, error } = useLoaded(
    async () => {
      const worker = (await readWorkers(client)).find((each) => each.name === name);
      const queues = worker ? queuesOf(worker) : [];
      const pages = await Promise.all(queues.map((queue) => client.queue(queue).browse("leased", { limit: JOBS })));
      return { worker, jobs: pages.flatMap((page) => page.messages).filter((message) => message.holder === name) };
    },
    name,
    (found) => [`watch:dict:${WORKERS}`, ...(found.worker ? queuesOf(found.worker) : []).map((queue) => `watch:queue:${queue}`)],
  );
  const rows = (data?.jobs ?? []).map((job) => [
    <a href={to("message", job.queue, job.id)}>{job.id}</a>,
    <a href={to("queues", job.queue)}>{job.queue}</a>,
    (job.metadata as { task?: string } | null)?.task ?? "",
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
      {worker && <p>Since <Since at={worker.started_at} /> on {worker.host}, process {worker.pid}, {worker.execution}; knows {(worker.tasks ?? []).join(", ") || "one function"}.</p>}
      {worker && <h2>Running now</h2>}
      {worker && <Table heads={["job", "queue", "task", "claimed", "lease until", "attempts", "value"]} rows={rows} empty="Nothing." />}
    </>
  );
}
