/** The other screens: overview, dicts, locks, schedules, workers, events, audit, health. */

import { useEffect, useState } from "preact/hooks";

import { type Key, encodeKey, type wire } from "../../client/src/index.ts";
import { Act, Failure, Table, Value, age, short, when } from "./parts.tsx";
import { readQueues, wallOffset } from "./queues.tsx";
import { to, useClient, useLoaded } from "./state.ts";

const WORKERS = "holdfast-workers";
const SCHEDULES = "holdfast-schedules";
const SURVIVES = { power: "a loss of power", process: "the death of every process", nothing: "no restart" };

interface Worker {
  name: string;
  queue: string;
  host: string;
  pid: number;
  concurrency: number;
  seen_at: string;
  health: { state: string; running: number; done: number; failed: number; error?: string | null };
}

export function Overview() {
  const client = useClient();
  const { data, error } = useLoaded(
    async () => {
      const [queues, workers, about] = await Promise.all([readQueues(client), client.dict<Worker>(WORKERS).entries(), client.about()]);
      return { queues: queues.rows, workers: workers.map((entry) => entry.value), about };
    },
    "overview",
    [`dict:${WORKERS}`],
    5,
  );
  const sum = (field: "ready" | "leased" | "dead") => data?.queues.reduce((total, { stats }) => total + (stats[field] ?? 0), 0);
  const oldest = data?.queues.toSorted((a, b) => (b.stats.oldest_ready_s ?? 0) - (a.stats.oldest_ready_s ?? 0))[0];
  const served = new Set(data?.workers.map((worker) => worker.queue));
  const stuck = data?.queues.filter(({ settings, stats }) => stats.ready && !stats.leased && !served.has(settings.name)) ?? [];
  return (
    <>
      <h1>Overview</h1>
      <Failure error={error} />
      {data && (
        <>
          <dl>
            <dt>store</dt><dd>{data.about.guarantees.engine}, acknowledged work survives {SURVIVES[data.about.guarantees.survives]}</dd>
            <dt>ready</dt><dd>{sum("ready")} in {data.queues.length} queues</dd>
            <dt>being worked on</dt><dd>{sum("leased")}</dd>
            <dt>dead</dt><dd class={sum("dead") ? "bad" : ""}>{sum("dead")}</dd>
            <dt>oldest ready</dt>
            <dd>{oldest?.stats.oldest_ready_s ? <a href={to("queues", oldest.settings.name)}>{age(oldest.stats.oldest_ready_s)} in {oldest.settings.name}</a> : "–"}</dd>
            <dt>workers</dt><dd>{data.workers.length} alive</dd>
          </dl>
          {stuck.length > 0 && (
            <p class="note" role="status">
              No living worker serves: {stuck.map(({ settings }) => <a href={to("queues", settings.name)}>{settings.name} </a>)}
            </p>
          )}
          <h2>Workers</h2>
          <WorkerTable workers={data.workers} />
        </>
      )}
    </>
  );
}

function WorkerTable({ workers }: { workers: Worker[] }) {
  const rows = workers.map((worker) => [
    worker.name,
    <a href={to("queues", worker.queue)}>{worker.queue}</a>,
    `${worker.host}, ${worker.pid}`,
    worker.health.state,
    `${worker.health.running} of ${worker.concurrency}`,
    worker.health.done,
    worker.health.failed,
    new Date(worker.seen_at).toLocaleTimeString(),
    worker.health.error ?? "",
  ]);
  const heads = ["worker", "queue", "host, process", "state", "running", "done", "failed", "seen", "error"];
  return <Table heads={heads} rows={rows} empty="No worker is alive." />;
}

export function Workers() {
  const client = useClient();
  const { data, error } = useLoaded(() => client.dict<Worker>(WORKERS).entries(), "workers", [`dict:${WORKERS}`]);
  return <><h1>Workers</h1><Failure error={error} />{data && <WorkerTable workers={data.map((entry) => entry.value)} />}</>;
}

export function Dicts() {
  const client = useClient();
  const { data, error } = useLoaded(async () => (await client.execute("Names", { kind: "dict", limit: 200 })).settings, "dicts");
  const rows = (data ?? []).map((one) => [<a href={to("dicts", one.name)}>{one.name}</a>]);
  return <><h1>Dicts</h1><Failure error={error} />{data && <Table heads={["dict"]} rows={rows} empty="No dicts yet." />}</>;
}

export function DictScreen({ name }: { name: string }) {
  const client = useClient();
  const dict = client.dict(name);
  const [prefix, setPrefix] = useState("");
  const [after, setAfter] = useState<Key>();
  const [edited, setEdited] = useState<{ key: Key; revision: number; value: string }>();
  const { data, error, reload } = useLoaded(
    () => dict.entries({ limit: 50, ...(prefix ? { prefix } : {}), ...(after === undefined ? {} : { after }) }),
    JSON.stringify([name, prefix, after]),
    [`dict:${name}`],
  );
  const rows = (data ?? []).map((entry) => [
    <code>{encodeKey(entry.key)}</code>,
    <code>{short(entry.value)}</code>,
    entry.revision,
    <>
      <button type="button" onClick={() => setEdited({ key: entry.key, revision: entry.revision, value: JSON.stringify(entry.value, null, 2) })}>Edit</button>
      <Act label="Delete" danger act={() => dict.delete(entry.key)} done={reload} confirm={`Delete ${encodeKey(entry.key)}?`} />
    </>,
  ]);
  const save = async () => {
    if (!(await dict.compareAndSet(edited!.key, edited!.revision, JSON.parse(edited!.value)))) {
      throw new Error("Another client has changed it meanwhile: close, and edit the newer value.");
    }
  };
  return (
    <>
      <h1>Dict {name}</h1>
      <Failure error={error} />
      <div class="row"><label>Key begins with <input value={prefix} onChange={(event) => (setAfter(undefined), setPrefix(event.currentTarget.value))} /></label></div>
      {data && <Table heads={["key", "value", "revision", "actions"]} rows={rows} empty="No entries." />}
      {data?.length === 50 && <button type="button" onClick={() => setAfter(data.at(-1)!.key)}>Next page</button>}
      {edited && (
        <form onSubmit={(event) => event.preventDefault()}>
          <h2>Edit <code>{encodeKey(edited.key)}</code>, revision {edited.revision}</h2>
          <label class="quiet">Value as JSON
            <textarea rows={8} cols={80} value={edited.value} onInput={(event) => setEdited({ ...edited, value: event.currentTarget.value })} />
          </label>
          <div class="row">
            <Act label="Save" act={save} done={() => (setEdited(undefined), reload())} />
            <button type="button" onClick={() => setEdited(undefined)}>Close</button>
          </div>
        </form>
      )}
    </>
  );
}

export function Locks() {
  const client = useClient();
  const [asked, setAsked] = useState<{ kind: string; name: string }>();
  const { data, error } = useLoaded(
    async () => {
      if (!asked) return undefined;
      const found = await client.execute("Look", { keys: [[null, encodeKey([asked.kind, asked.name])]] } as never);
      return { found, offset: await wallOffset(client) };
    },
    JSON.stringify(asked),
    asked ? [`lease::${encodeKey([asked.kind, asked.name])}`] : [],
  );
  const look = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setAsked({ kind: String(form.get("kind")), name: String(form.get("name")) });
  };
  return (
    <>
      <h1>Locks and leaders</h1>
      <form class="row" onSubmit={look}>
        <label>Kind <select name="kind"><option>lock</option><option>election</option><option>semaphore</option><option>rwlock</option></select></label>
        <label>Name <input name="name" required /></label>
        <button type="submit">Look</button>
      </form>
      <Failure error={error} />
      {data && <Value value={data.found} />}
    </>
  );
}

interface Schedule { rule: string; tz?: string; queue: string; paused?: string | null; last?: number | null }

export function Schedules() {
  const client = useClient();
  const { data, error } = useLoaded(() => client.dict<Schedule>(SCHEDULES).entries(), "schedules", [`dict:${SCHEDULES}`]);
  const rows = (data ?? []).map(({ key, value }) => [
    String(key),
    <code>{value.rule}</code>,
    value.tz ?? "UTC",
    <a href={to("queues", value.queue)}>{value.queue}</a>,
    value.last ? new Date(value.last / 1000).toLocaleString() : "never",
    value.paused == null ? "active" : `paused ${value.paused}`,
  ]);
  return (
    <>
      <h1>Schedules</h1>
      <Failure error={error} />
      {data && <Table heads={["name", "rule", "time zone", "queue", "last run", "state"]} rows={rows} empty="No schedules." />}
    </>
  );
}

const KEPT = 200;

export function Events({ topic }: { topic: string | undefined }) {
  const client = useClient();
  const [seen, setSeen] = useState<wire.Event[]>([]);
  const [error, setError] = useState<string>();
  useEffect(() => {
    setSeen([]);
    setError(undefined);
    if (!topic) return;
    const end = new AbortController();
    void (async () => {
      try {
        for await (const event of client.watch(topic, { signal: end.signal })) setSeen((before) => [event, ...before].slice(0, KEPT));
      } catch (failed) {
        setError((failed as Error).message);
      }
    })();
    return () => end.abort();
  }, [topic]);
  const [offset, setOffset] = useState(0);
  useEffect(() => void wallOffset(client).then(setOffset, () => undefined), []);
  const choose = (event: SubmitEvent) => {
    event.preventDefault();
    location.hash = to("events", String(new FormData(event.currentTarget as HTMLFormElement).get("topic")));
  };
  return (
    <>
      <h1>Live events</h1>
      <form class="row" onSubmit={choose}>
        <label>Topic, as in queue:NAME or dict:NAME <input name="topic" required value={topic ?? ""} /></label>
        <button type="submit">Follow</button>
      </form>
      {error && <p class="note" role="alert">{error}</p>}
      {topic && (
        <Table
          heads={["index", "at", "event", "facts"]}
          rows={seen.map((event) => [event.index, when(event.at, offset), event.event, <code>{short(event.data, 160)}</code>])}
          empty="Nothing yet."
        />
      )}
    </>
  );
}

export function Audit() {
  const client = useClient();
  const { data, error } = useLoaded(async () => {
    const response = await client.request("/v1/audit?limit=100");
    if (!response.ok) throw new Error(((await response.json()) as { detail: string }).detail);
    return (await response.json()) as wire.AuditPage;
  }, "audit");
  const rows = (data?.records ?? []).map((record) => Object.values(record).map((value) => short(value, 120)));
  const heads = Object.keys(data?.records[0] ?? { record: "" });
  return <><h1>Audit</h1><Failure error={error} />{data && <Table heads={heads} rows={rows} empty="No acts of administrators." />}</>;
}

export function Health() {
  const client = useClient();
  const { data, error } = useLoaded(() => client.about(), "about");
  return <><h1>Health and guarantees</h1><Failure error={error} />{data && <Value value={data} />}</>;
}
