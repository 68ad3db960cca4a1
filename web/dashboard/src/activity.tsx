/** What queues did lately, from the event log: their rates, and the course of all together. */

import { useMemo } from "preact/hooks";

import type { wire } from "../../client/src/index.ts";
import { Chart } from "./chart.tsx";
import { age } from "./parts.tsx";
import { type Loaded, useClient, useLoaded } from "./state.ts";

const SINCE_S = 3_600;
const LEAST_MS = 5_000;

/** Of so many queues at most. */
export const QUEUES_MOST = 10;

export interface Course {
  activity: wire.Activity;
  at: number;
}

/** Read again at most every five seconds, and only after something changed. */
export function useActivity(queues: readonly string[], tasks = false): Loaded<Course | undefined> {
  const client = useClient();
  const asked = queues.slice(0, QUEUES_MOST);
  return useLoaded(
    async () => (asked.length ? { activity: await client.activity(asked, SINCE_S, tasks), at: Date.now() / 1000 } : undefined),
    `activity ${tasks} ${asked.join("\n")}`,
    asked.map((name) => `watch:queue:${name}`),
    LEAST_MS,
  );
}

/** How often something was done, and what share of what ended failed. */
export function ratesOf(activity: wire.Activity): { donePerS: number; failedShare: number | null } {
  const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0);
  const [done, failed] = [sum(activity.done), sum(activity.failed)];
  return { donePerS: done / activity.window_s, failedShare: done + failed ? failed / (done + failed) : null };
}

export function ActivityCharts({ course, of }: { course: Course; of: string }) {
  const { activity, at } = course;
  const times = useMemo(() => activity.done.map((_, place) => at - (activity.done.length - 1 - place) * activity.step_s), [course]);
  const reach = `per ${age(activity.step_s)}, last ${age(activity.window_s)}`;
  return (
    <>
      <Chart title={`Throughput ${of} ${reach}`} stepped sums times={times} lines={[{ name: "put", values: activity.put, color: "accent" }, { name: "done", values: activity.done, color: "good" }]} />
      <Chart title={`Failures ${of} ${reach}`} stepped sums times={times} lines={[{ name: "failed or expired", values: activity.failed, color: "bad" }]} />
    </>
  );
}
