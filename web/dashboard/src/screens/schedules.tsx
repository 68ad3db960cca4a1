/** Schedules, with their last and next runs. */

import { useState } from "preact/hooks";

import { Act, Badge, Failure, Fields, Pages, Since, Table } from "../parts.tsx";
import { PAGE } from "../queue_counts.ts";
import { to, useClient, useLoaded, useMay } from "../state.ts";

export const SCHEDULES = "holdfast-schedules";

export function Schedules() {
  const client = useClient();
  const may = useMay();
  const mayWrite = may("dict", SCHEDULES, "write");
  const [prefix, setPrefix] = useState("");
  const [after, setAfter] = useState<string | null>(null);
  const { data, error, reload } = useLoaded(
    () => client.schedules(prefix, { limit: PAGE, ...(after === null ? {} : { after }) }),
    JSON.stringify(["schedules", prefix, after]),
    [`watch:dict:${SCHEDULES}`],
  );
  const rows = (data ?? []).map((one) => [
    one.name,
    <code>{one.rule}</code>,
    one.tz,
    <a href={to("queues", one.queue)}>{one.queue}</a>,
    <Since at={one.last_run} />,
    <Since at={one.next_run} />,
    one.runs,
    one.skipped + one.missed,
    one.paused !== null ? <Badge kind="warn">paused {one.paused}</Badge> : one.is_orphan ? <Badge kind="warn">no code declares it</Badge> : one.served_by.length ? <Badge kind="good">active</Badge> : <Badge kind="bad">no worker of its queue</Badge>,
    ...(mayWrite
      ? [
          <span class="acts">
            {one.paused === null
              ? <Act label="Pause" reason confirm={`Pause ${one.name}? Runs that pass meanwhile are missed.`} act={(reason) => client.steerSchedule(one.name, "pause", reason)} done={reload} />
              : <Act label="Resume" act={() => client.steerSchedule(one.name, "resume")} done={reload} />}
            {may("queue", one.queue, "put") && <Act label="Run now" act={() => client.steerSchedule(one.name, "run")} done={reload} />}
          </span>,
        ]
      : []),
  ]);
  const heads = ["name", "rule", "time zone", "queue", "last run", "next run", "runs", "left out", "state", ...(mayWrite ? ["actions"] : [])];
  return (
    <>
      <h1>Schedules</h1>
      <p class="quiet">What is put by itself, when it ran last, and when it runs next.</p>
      <Fields button="Search" onSubmit={(fields) => (setAfter(null), setPrefix(fields["prefix"] ?? ""))}><label>Name begins with <input name="prefix" data-search /></label></Fields>
      <Failure error={error} />
      {data && <Table heads={heads} rows={rows} keys={data.map(({ name }) => name)} empty={prefix ? "No schedules that match." : "No schedules."} />}
      <Pages after={after} next={data?.length === PAGE && data.at(-1)!.name} go={setAfter} />
    </>
  );
}
