/** What is stuck: since when, by whom, and what to press. */

import type { ComponentChildren } from "preact";

import type { wire } from "../../../client/src/index.ts";
import { Act, Ago, Badge, type Kind, Since, age } from "../parts.tsx";
import type { QueueRow } from "../queue_counts.ts";
import { to, useClient, useMay } from "../state.ts";
import { leaseNamed } from "./locks.tsx";
import { type Worker, queuesOf } from "./workers.tsx";

const LATE_S = 300;
const LONG_HELD_S = 3_600;
const OVERDUE_S = 60;
const SHOWN = 20;

export interface Trouble {
  kind: Kind;
  /** For the order: the worse first, then the older. */
  since_s: number;
  name: string;
  href: string;
  what: ComponentChildren;
  /** Whose fault it is, as far as that is known. */
  who: ComponentChildren;
  press: ComponentChildren;
}

function inQueues(rows: readonly QueueRow[], workers: readonly Worker[], resume: (name: string) => ComponentChildren): Trouble[] {
  const served = new Set(workers.flatMap(queuesOf));
  return rows.flatMap(({ settings, stats }) => {
    const { name } = settings;
    const found: Trouble[] = [];
    const at = (part: string) => ({ name, href: to("queues", name, part) });
    const ready = stats.ready ?? 0;
    const waits = <>{ready.toLocaleString("en")} wait, the oldest for <b>{age(stats.oldest_ready_s)}</b></>;
    const oldest = stats.oldest_ready_s ?? 0;
    if (settings.paused && ready) found.push({ kind: "bad", since_s: oldest, ...at("ready"), what: <>Paused; {waits}.</>, who: "who paused it is in the audit", press: resume(name) });
    else if (ready && !served.has(name) && !stats.leased) found.push({ kind: "bad", since_s: oldest, ...at("ready"), what: <>No living worker serves it; {waits}.</>, who: "no worker", press: "Start a worker for it." });
    else if (ready && oldest > LATE_S) found.push({ kind: "warn", since_s: oldest, ...at("ready"), what: <>Late; {waits}.</>, who: holdersOf(stats), press: <a href={to("queues", name, "activity")}>See its rates: add workers, or find what is slow</a> });
    if (stats.dead) found.push({ kind: "warn", since_s: stats.oldest_dead_s ?? 0, ...at("dead"), what: <>{stats.dead.toLocaleString("en")} dead {stats.dead === 1 ? "letter" : "letters"}, the oldest for <b>{age(stats.oldest_dead_s)}</b>.</>, who: "", press: <a href={to("dead")}>Read the errors, then redrive or remove</a> });
    if ((stats.oldest_leased_s ?? 0) > LONG_HELD_S) found.push({ kind: "warn", since_s: stats.oldest_leased_s!, ...at("leased"), what: <>A claim is held for <b>{age(stats.oldest_leased_s)}</b>.</>, who: holdersOf(stats), press: <a href={to("queues", name, "leased")}>See who holds it</a> });
    return found;
  });
}

function holdersOf(stats: wire.Stats): ComponentChildren {
  const [holder] = Object.entries(stats.holders ?? {}).toSorted((a, b) => b[1] - a[1]);
  return holder ? <>{holder[0]} has {holder[1].toLocaleString("en")}</> : "";
}

function inWorkers(workers: readonly Worker[]): Trouble[] {
  return workers.filter(({ health }) => health.error || health.abandoned).map((worker) => ({
    kind: "bad" as const,
    since_s: 0,
    name: worker.name,
    href: to("workers", worker.name),
    what: worker.health.error ? <>The worker is {worker.health.state}: {worker.health.error}.</> : <>{worker.health.abandoned} jobs ran over their limit and still use its threads.</>,
    who: `${worker.host}, process ${worker.pid}`,
    press: "See its log, then restart it.",
  }));
}

function inLocks(held: readonly wire.Holding[]): Trouble[] {
  return held.filter(({ waiting, leases }) => waiting && leases?.length).map((holding) => {
    const [kind, name] = leaseNamed(holding.key);
    const lease = holding.leases![0]!;
    return {
      kind: "warn" as const,
      since_s: 0,
      name,
      href: to("locks"),
      what: <>{holding.waiting} wait for the {kind || "lease"}, held for <b><Ago plain moment={lease.since} /></b>.</>,
      who: lease.holder,
      press: <a href={to("locks")}>If its holder hangs, break it</a>,
    };
  });
}

function inSchedules(schedules: readonly wire.ScheduleStatus[]): Trouble[] {
  return schedules.filter(({ paused }) => paused === null).flatMap(({ name, queue, next_run, served_by }): Trouble[] => {
    const overdue_s = next_run === null ? 0 : (Date.now() - Date.parse(next_run)) / 1000;
    const at = { name, href: to("schedules") };
    if (overdue_s > OVERDUE_S) return [{ kind: "bad", since_s: overdue_s, ...at, what: <>The schedule is overdue for <b>{age(overdue_s)}</b>.</>, who: "nobody puts its runs", press: "Start a worker, or `holdfast schedule run`." }];
    if (!served_by.length) return [{ kind: "warn", since_s: 0, ...at, what: <>No living worker serves its queue {queue}; it runs next <b><Since at={next_run} /></b>.</>, who: "no worker", press: "Start a worker for it." }];
    return [];
  });
}

interface Looked {
  rows: QueueRow[];
  workers: Worker[];
  held: wire.Holding[];
  schedules: wire.ScheduleStatus[];
}

export function Attention({ rows, workers, held, schedules }: Looked) {
  const client = useClient();
  const may = useMay();
  const resume = (name: string) => (may("queue", name, "manage") ? <Act label="Resume" act={() => client.queue(name).resume()} /> : "Resume it.");
  const found = [...inQueues(rows, workers, resume), ...inWorkers(workers), ...inLocks(held), ...inSchedules(schedules)];
  const order = found.toSorted((a, b) => Number(b.kind === "bad") - Number(a.kind === "bad") || b.since_s - a.since_s);
  if (!order.length) return <p class="all-well">Nothing needs attention: no dead letters, no queue without a worker, none that waits for long, no schedule overdue.</p>;
  return (
    <>
      <ul class="troubles">
        {order.slice(0, SHOWN).map((trouble) => (
          <li key={`${trouble.href} ${trouble.name}`} class={trouble.kind}>
            <Badge kind={trouble.kind}>{trouble.kind === "bad" ? "stuck" : "look"}</Badge>
            <span class="where"><a href={trouble.href}>{trouble.name}</a></span>
            <span>{trouble.what} {trouble.who && <span class="quiet">({trouble.who})</span>}</span>
            <span class="press">{trouble.press}</span>
          </li>
        ))}
      </ul>
      {order.length > SHOWN && <p class="quiet">And {order.length - SHOWN} more.</p>}
    </>
  );
}
