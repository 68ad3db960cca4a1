/** One queue: its messages by state, its groups, its settings. */

import { useState } from "preact/hooks";

import type { wire } from "../../../client/src/index.ts";
import { ActivityCharts, useActivity } from "../activity.tsx";
import { Act, Ago, Badge, Facts, Failure, Fields, Id, Pages, Table, Tabs, Tile, When, age, perMinute, percent, short } from "../parts.tsx";
import { PAGE, aged } from "../queue_counts.ts";
import { to, useClient, useLoaded, useMay, useSecondsSince } from "../state.ts";
import { BulkActs } from "./bulk.tsx";
import { type Worker, queuesOf, readWorkers } from "./workers.tsx";

const STATES = ["ready", "leased", "dead", "buffered", "done"] as const;
export type State = (typeof STATES)[number];

export function QueueScreen({ name, part, group }: { name: string; part: string; group: string | undefined }) {
  const client = useClient();
  const { data, error, reload } = useLoaded(
    async () => {
      const [stats, named, workers] = await Promise.all([
        client.queue(name).stats(),
        client.execute("Names", { kind: "queue", prefix: name, exact: true }),
        readWorkers(client).catch(() => undefined),
      ]);
      return { stats, settings: named.settings[0], serving: workers?.filter((worker) => queuesOf(worker).includes(name)) };
    },
    name,
    [`watch:queue:${name}`],
  );
  const count = (state: State) => {
    const stats = data?.stats;
    return stats && (state === "ready" ? (stats.ready ?? 0) + (stats.delayed ?? 0) : ((stats[state as keyof wire.Stats] as number | undefined) ?? 0));
  };
  const tabs = [
    ...STATES.map((state) => ({ name: state as string, href: to("queues", name, state, ...ofGroup(group)), count: group === undefined ? count(state) : undefined })),
    ...(data?.settings?.policy?.groups ? [{ name: "groups", href: to("queues", name, "groups") }] : []),
    { name: "activity", href: to("queues", name, "activity") },
    { name: "settings", href: to("queues", name, "settings") },
  ];
  const paused = data?.settings?.paused ?? false;
  if (data && !data.settings) return <NoQueue name={name} serving={data.serving} />;
  return (
    <>
      <div class="title">
        <h1>Queue {name} {paused && <Badge kind="warn">paused</Badge>}</h1>
        {data && <QueueActs name={name} paused={paused} done={reload} />}
      </div>
      <Failure error={error} />
      {data && <Standing stats={data.stats} paused={paused} serving={data.serving} />}
      <Tabs label="Parts of the queue" tabs={tabs} current={part} />
      <Part name={name} part={part} group={group} settings={data?.settings} />
    </>
  );
}

/** A queue that is not there: nothing can be done with it, and a button would make it. */
function NoQueue({ name, serving }: { name: string; serving: Worker[] | undefined }) {
  return (
    <>
      <h1>Queue {name}</h1>
      <p class="said">There is no queue of this name{serving?.length ? `, though ${serving[0]!.name} waits for its messages` : ""}: the first message makes it. <a href={to("queues")}>All queues</a></p>
    </>
  );
}

/** What leads to the messages of one group; "" is that of messages without one. */
function ofGroup(group: string | undefined): string[] {
  return group === undefined ? [] : ["group", group];
}

function Part({ name, part, group, settings }: { name: string; part: string; group: string | undefined; settings: wire.Settings | undefined }) {
  if (part === "groups") return <Groups name={name} />;
  if (part === "activity") return <ActivityPart name={name} />;
  if (part === "settings") return <Settings settings={settings} />;
  return <Messages key={`${part} ${group}`} name={name} state={part as State} group={group} />;
}

/** In one line: what waits for how long, and who serves it. */
function Standing({ stats: read, paused, serving }: { stats: wire.Stats; paused: boolean; serving: Worker[] | undefined }) {
  const stats = aged(read, useSecondsSince(read));
  const delayed = stats.delayed ? <>{stats.delayed.toLocaleString("en")} delayed. </> : "";
  const waits = stats.ready ? <>{stats.ready.toLocaleString("en")} ready, the oldest for {age(stats.oldest_ready_s)}. </> : <>Nothing is ready. </>;
  const serves = serving?.length
    ? <>Served by {serving.slice(0, 5).map((worker) => <a class="each" href={to("workers", worker.name)}>{worker.name}</a>)}{serving.length > 5 && `and ${serving.length - 5} more`}</>
    : <span class={stats.ready ? "bad" : ""}>No living worker serves it.</span>;
  return <p class="standing">{waits}{delayed}{paused && <span class="bad">It is paused: nothing is handed out. </span>}{serving && serves}</p>;
}

function ActivityPart({ name }: { name: string }) {
  const { data, error } = useActivity([name], true);
  const rates = data?.activity.queues[name];
  const tasks = Object.entries(data?.activity.tasks?.[name] ?? {});
  return (
    <>
      <Failure error={error} />
      {data && rates && (
        <>
          <div class="tiles">
            <Tile name="put" value={rates.put ?? 0}>last {age(rates.window_s)}</Tile>
            <Tile name="done" value={rates.done ?? 0}>{perMinute(rates.done_per_s ?? 0)} a minute</Tile>
            <Tile name="failed or expired" value={(rates.failed ?? 0) + (rates.expired ?? 0)} kind={rates.failed || rates.expired ? "bad" : undefined}>{percent(rates.failed_share)} of what ended</Tile>
            <Tile name="wait" value={age(rates.median_wait_s)}>95 % within {age(rates.p95_wait_s)}</Tile>
            <Tile name="duration" value={age(rates.median_duration_s)}>95 % within {age(rates.p95_duration_s)}</Tile>
          </div>
          <div class="charts"><ActivityCharts course={data} of={`of ${name}`} /></div>
          {tasks.length > 0 && <TaskTable tasks={tasks} />}
          <p class="quiet">From the event log{rates.is_whole ? "" : ", which reaches back no further, or is read no further"}. <a href={to("events", `queue:${name}`)}>Live events</a></p>
        </>
      )}
    </>
  );
}

/** What workers say of each task with their heartbeats. */
function TaskTable({ tasks }: { tasks: [string, wire.TaskRates][] }) {
  const rows = tasks
    .toSorted(([, a], [, b]) => (b.done ?? 0) + (b.failed ?? 0) - (a.done ?? 0) - (a.failed ?? 0))
    .slice(0, PAGE)
    .map(([task, rates]) => [
      task,
      rates.done ?? 0,
      rates.failed ?? 0,
      percent(rates.failed_share),
      age(rates.median_wait_s),
      age(rates.p95_wait_s),
      age(rates.median_duration_s),
      age(rates.p95_duration_s),
    ]);
  return <Table heads={["task", "done", "failed", "share failed", "wait", "wait p95", "duration", "duration p95"]} rows={rows} empty="No task ran." />;
}

function QueueActs({ name, paused, done }: { name: string; paused: boolean; done: () => void }) {
  const client = useClient();
  const queue = client.queue(name);
  if (!useMay()("queue", name, "manage")) return null;
  return (
    <div class="row">
      {paused ? <Act label="Resume" act={() => queue.resume()} done={done} /> : <Act label="Pause" act={() => queue.pause()} done={done} />}
      <Act label="Purge" danger act={() => client.execute("Clear", { kind: "queue", name })} done={done} confirm={`Remove every message of ${name}? Claims on them are lost.`} />
    </div>
  );
}

function Messages({ name, state, group }: { name: string; state: State; group: string | undefined }) {
  const client = useClient();
  const queue = client.queue(name);
  const [which, setWhich] = useState<wire.Filter>(group === undefined ? {} : { group });
  const [after, setAfter] = useState<wire.Browsed["after"]>(null);
  const { data, error, reload } = useLoaded(
    () => queue.browse(state, { which, after: after ?? null, limit: PAGE }),
    JSON.stringify([name, state, which, after]),
    [`watch:queue:${name}`],
  );
  const search = (fields: Record<string, string>) => {
    const text = (field: string) => fields[field] || null;
    const prefix = text("key");
    if (text("id")) location.hash = to("message", name, text("id")!);
    setAfter(null);
    setWhich({
      label: text("label"),
      group: group ?? text("group"),
      error_class: text("class"),
      error_contains: text("error"),
      value_contains: text("value"),
      older_than_s: Number(fields["older"]) || null,
      newer_than_s: Number(fields["newer"]) || null,
      key_prefix: prefix && JSON.stringify(prefix).slice(0, -1),
    });
  };
  const done = () => (setAfter(null), reload());
  return (
    <>
      {group !== undefined && <p>Of {group === "" ? "messages without a group" : <>group <b>{group}</b></>} alone. <a href={to("queues", name, state)}>Show all groups</a></p>}
      <Fields button="Search" onSubmit={search}>
        <label>Text in the value <input name="value" data-search /></label>
        <label>Key begins with <input name="key" /></label>
        {group === undefined && <label>Group <input name="group" /></label>}
        <label>Label <input name="label" /></label>
        <label>Error class <input name="class" key={which.error_class} defaultValue={which.error_class ?? ""} /></label>
        <label>Error contains <input name="error" /></label>
        <Ages label="Older than" name="older" />
        <Ages label="Newer than" name="newer" />
        <label>Or go to id <input name="id" /></label>
      </Fields>
      <Failure error={error} />
      {state === "dead" && data && <ByError messages={data.messages} onError={(error_class) => (setAfter(null), setWhich({ ...(group !== undefined && { group }), error_class }))} />}
      {state !== "leased" && state !== "buffered" && data && data.messages.length > 0 && <div class="row"><BulkActs name={name} state={state} which={which} done={done} /></div>}
      {data && <MessageTable name={name} state={state} messages={data.messages} empty={data.after ? "None of those that were looked at matches: see the next page." : `No ${state} messages that match.`} done={done} />}
      <Pages after={after} next={data?.after} go={setAfter} />
    </>
  );
}

const AGES = [["any age", 0], ["a minute", 60], ["ten minutes", 600], ["an hour", 3_600], ["a day", 86_400]] as const;

function Ages({ label, name }: { label: string; name: string }) {
  return <label>{label} <select name={name}>{AGES.map(([said, seconds]) => <option value={seconds}>{said}</option>)}</select></label>;
}

/** An error up to its first colon, which is the class of an exception; the server searches for the same. */
export function errorClass(message: wire.Message): string {
  return (message.last_error ?? "no error").split(":")[0]!;
}

function ByError({ messages, onError }: { messages: wire.Message[]; onError: (error: string) => void }) {
  const kinds = Map.groupBy(messages, errorClass);
  if (kinds.size < 2) return null;
  const rows = [...kinds].sort((a, b) => b[1].length - a[1].length).map(([kind, all]) => [
    <button type="button" class="link" onClick={() => onError(kind)}>{kind}</button>,
    all.length,
    short(all[0]!.last_error ?? ""),
  ]);
  return <><h2>By error, on this page</h2><Table heads={["error", "letters", "for instance"]} rows={rows} empty="" /></>;
}

function MessageTable(props: { name: string; state: State; messages: wire.Message[]; empty: string; done: () => void }) {
  const client = useClient();
  const mayManage = useMay()("queue", props.name, "manage");
  const move = (id: string, target: "ready" | "gone") => client.execute("Move", { queue: props.name, to: target, ids: [id], state: props.state });
  const rows = props.messages.map((message) => [
    <a href={to("message", props.name, message.id)}><Id id={message.id} /></a>,
    short(message.key ?? "", 40),
    short(message.group ?? "", 40),
    message.attempts || "",
    <Ago moment={message.created_at} />,
    props.state === "leased" ? <>{message.holder} for <Ago plain moment={message.since} />, ends <Ago moment={message.until} /></> : short(message.last_error ?? "", 120),
    <code>{short(message.value)}</code>,
    ...(mayManage
      ? [
          <span class="acts">
            {props.state === "dead" && <Act label="Redrive" act={() => move(message.id, "ready")} done={props.done} />}
            {props.state !== "leased" && <Act label="Remove" danger act={() => move(message.id, "gone")} done={props.done} confirm={`Remove message ${message.id}?`} />}
          </span>,
        ]
      : []),
  ]);
  const heads = ["id", "key", "group", "attempts", "put", props.state === "leased" ? "holder" : "last error", "value", ...(mayManage ? ["actions"] : [])];
  return <Table heads={heads} rows={rows} keys={props.messages.map(({ id }) => id)} empty={props.empty} />;
}

function Groups({ name }: { name: string }) {
  const client = useClient();
  const [prefix, setPrefix] = useState("");
  const [after, setAfter] = useState<string | null>(null);
  const mayManage = useMay()("queue", name, "manage");
  const { data, error, reload } = useLoaded(() => client.execute("Groups", { queue: name, prefix, after, limit: PAGE }), JSON.stringify([name, prefix, after]), [`watch:queue:${name}`]);
  const set = (group: string, change: object) => client.execute("Configure", { kind: "queue", name, group, ...change });
  const rows = (data?.lanes ?? []).map((lane) => {
    const group = lane.name;
    const isPaused = lane.own?.paused ?? false;
    return [
      <a href={to("queues", name, "ready", ...ofGroup(group))}>{group === "" ? "without a group" : group}</a>,
      lane.open ? <Badge kind="good">open</Badge> : isPaused ? <Badge kind="warn">paused</Badge> : <Badge>full, or waits</Badge>,
      lane.live ?? 0,
      lane.own?.limit ?? "",
      lane.own?.weight ?? "",
      lane.wakes ? <When moment={lane.wakes} /> : "",
      ...(mayManage ? [<Act label={isPaused ? "Resume" : "Pause"} act={() => set(group, { paused: !isPaused })} done={reload} />] : []),
    ];
  });
  return (
    <>
      <Fields button="Search" onSubmit={(fields) => (setAfter(null), setPrefix(fields["prefix"] ?? ""))}><label>Group begins with <input name="prefix" data-search /></label></Fields>
      <Failure error={error} />
      {data && <Table heads={["group", "state", "in work", "own limit", "own weight", "opens at", ...(mayManage ? ["actions"] : [])]} rows={rows} keys={data.lanes.map((lane) => lane.name)} empty="No group has messages or settings." />}
      <Pages after={after} next={data?.more && data.lanes.at(-1)!.name} go={setAfter} />
    </>
  );
}

function Settings({ settings }: { settings: wire.Settings | undefined }) {
  if (!settings) return null;
  const policy = Object.entries(settings.policy ?? {}).filter(([, value]) => value !== null);
  return (
    <Facts
      facts={[
        ["created", <When moment={settings.created_at} />],
        ["at most", settings.maxsize == null ? "any number of messages" : `${settings.maxsize} messages`],
        ...policy.map(([name, value]): [string, string] => [name.replace(/_s$/, "").replaceAll("_", " "), name.endsWith("_s") ? age(value as number) : short(value)]),
      ]}
    />
  );
}
