/** Queues: all of them, one by state, one message, dead letters by error. */

import { useState } from "preact/hooks";

import type { Holdfast, wire } from "../../client/src/index.ts";
import { Act, Failure, Table, Value, age, short, when } from "./parts.tsx";
import { to, useClient, useLoaded } from "./state.ts";

const STATES = ["ready", "leased", "dead", "buffered", "done"] as const;
type State = (typeof STATES)[number];
const PAGE = 50;

export interface Row {
  settings: wire.Settings;
  stats: wire.Stats;
}

/** A page of queues with their sizes. */
export async function readQueues(client: Holdfast, after: string | null = null): Promise<{ rows: Row[]; more: boolean }> {
  const named = await client.execute("Names", { kind: "queue", after, limit: PAGE });
  const stats = await Promise.all(named.settings.map((one) => client.queue(one.name).stats()));
  return { rows: named.settings.map((settings, place) => ({ settings, stats: stats[place]! })), more: named.more ?? false };
}

export function Queues() {
  const client = useClient();
  const [after, setAfter] = useState<string | null>(null);
  const { data, error, reload } = useLoaded(() => readQueues(client, after), `queues ${after}`, [], 5);
  const rows = (data?.rows ?? []).map(({ settings, stats }) => [
    <a href={to("queues", settings.name)}>{settings.name}</a>,
    stats.ready ?? 0,
    stats.delayed ?? 0,
    stats.leased ?? 0,
    stats.buffered ?? 0,
    stats.dead ? <a class="bad" href={to("queues", settings.name, "dead")}>{stats.dead}</a> : 0,
    age(stats.oldest_ready_s),
    settings.paused ? "paused" : "",
  ]);
  return (
    <>
      <h1>Queues</h1>
      <Failure error={error} />
      <Table heads={["queue", "ready", "delayed", "leased", "buffered", "dead", "oldest ready", "state"]} rows={rows} empty="No queues yet." />
      <div class="row">
        {after !== null && <button type="button" onClick={() => setAfter(null)}>First page</button>}
        {data?.more && <button type="button" onClick={() => setAfter(data.rows.at(-1)!.settings.name)}>Next page</button>}
        <button type="button" onClick={reload}>Refresh</button>
      </div>
    </>
  );
}

export function QueueScreen({ name, state }: { name: string; state: State }) {
  const client = useClient();
  const queue = client.queue(name);
  const [which, setWhich] = useState<Partial<wire.Filter>>({});
  const [after, setAfter] = useState<unknown[] | null>(null);
  const key = JSON.stringify([name, state, which, after]);
  const { data, error, reload } = useLoaded(
    async () => {
      const [stats, page, named] = await Promise.all([
        queue.stats(),
        queue.browse(state, { which: which as wire.Filter, after: after as never, limit: PAGE }),
        client.execute("Names", { kind: "queue", prefix: name, exact: true }),
      ]);
      return { stats, page, settings: named.settings[0], offset: await wallOffset(client) };
    },
    key,
    [`queue:${name}`],
  );
  const again = () => {
    setAfter(null);
    reload();
  };
  return (
    <>
      <h1>Queue {name}</h1>
      <Failure error={error} />
      {data && <QueueActions name={name} paused={data.settings?.paused ?? false} dead={data.stats.dead ?? 0} done={again} />}
      <nav aria-label="States">
        {STATES.map((one) => (
          <a href={to("queues", name, one)} {...(one === state ? { "aria-current": "page" as const } : {})}>
            {one} {count(data?.stats, one)}
          </a>
        ))}
      </nav>
      <Search onSearch={(filter) => (setAfter(null), setWhich(filter))} />
      {state === "dead" && data && <ByError messages={data.page.messages} onError={(error_contains) => setWhich({ error_contains })} />}
      {data && <Messages name={name} state={state} page={data.page} offset={data.offset} done={again} />}
      {data?.page.after && <button type="button" onClick={() => setAfter(data.page.after as unknown[])}>Next page</button>}
    </>
  );
}

function count(stats: wire.Stats | undefined, state: State): number | "" {
  if (!stats) return "";
  return state === "ready" ? (stats.ready ?? 0) + (stats.delayed ?? 0) : ((stats[state as keyof wire.Stats] as number | undefined) ?? 0);
}

function QueueActions({ name, paused, dead, done }: { name: string; paused: boolean; dead: number; done: () => void }) {
  const client = useClient();
  const queue = client.queue(name);
  return (
    <div class="row">
      {paused ? <Act label="Resume" act={() => queue.resume()} done={done} /> : <Act label="Pause" act={() => queue.pause()} done={done} />}
      {dead > 0 && <Act label={`Redrive ${dead} dead letters`} act={() => queue.redrive()} done={done} confirm={`Give all dead letters of ${name} another chance?`} />}
      <Act
        label="Purge"
        danger
        act={() => client.execute("Clear", { kind: "queue", name })}
        done={done}
        confirm={`Remove every message of ${name}? Claims on them are lost.`}
      />
    </div>
  );
}

function Search({ onSearch }: { onSearch: (filter: Partial<wire.Filter>) => void }) {
  const search = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (field: string) => String(form.get(field) ?? "").trim() || null;
    const prefix = text("key");
    onSearch({ label: text("label"), error_contains: text("error"), key_prefix: prefix && JSON.stringify(prefix).slice(0, -1) });
  };
  return (
    <form class="row" onSubmit={search}>
      <label>Key begins with <input name="key" /></label>
      <label>Label <input name="label" /></label>
      <label>Error contains <input name="error" /></label>
      <button type="submit">Search</button>
    </form>
  );
}

function ByError({ messages, onError }: { messages: wire.Message[]; onError: (error: string) => void }) {
  const kinds = Map.groupBy(messages, (message) => (message.last_error ?? "no error").split(":")[0]!);
  const rows = [...kinds].sort((a, b) => b[1].length - a[1].length).map(([kind, all]) => [
    <button type="button" onClick={() => onError(kind)}>{kind}</button>,
    all.length,
    short(all[0]!.last_error ?? ""),
  ]);
  return (
    <>
      <h2>By error, of this page</h2>
      <Table heads={["error", "letters", "for instance"]} rows={rows} empty="No dead letters." />
    </>
  );
}

function Messages(props: { name: string; state: State; page: wire.Browsed; offset: number; done: () => void }) {
  const client = useClient();
  const move = (id: string, target: "ready" | "gone") =>
    client.execute("Move", { queue: props.name, to: target, ids: [id], state: props.state });
  const rows = props.page.messages.map((message) => [
    <a href={to("message", props.name, message.id)}>{message.id}</a>,
    message.key ?? "",
    message.group ?? "",
    message.attempts ?? 0,
    when(message.created_at, props.offset),
    props.state === "leased" ? `${message.holder} until ${when(message.until, props.offset)}` : short(message.last_error ?? ""),
    <code>{short(message.value)}</code>,
    <>
      {props.state === "dead" && <Act label="Redrive" act={() => move(message.id, "ready")} done={props.done} />}
      {props.state !== "leased" && (
        <Act label="Remove" danger act={() => move(message.id, "gone")} done={props.done} confirm={`Remove message ${message.id}?`} />
      )}
    </>,
  ]);
  const heads = ["id", "key", "group", "attempts", "put", props.state === "leased" ? "holder" : "last error", "value", "actions"];
  return <Table heads={heads} rows={rows} empty={`No ${props.state} messages.`} />;
}

export function MessageScreen({ queue, id }: { queue: string; id: string }) {
  const client = useClient();
  const { data, error } = useLoaded(
    async () => {
      const page = await client.execute("Browse", { queue, ids: [id] });
      return { message: page.messages[0], offset: await wallOffset(client) };
    },
    `${queue} ${id}`,
    [`queue:${queue}`],
  );
  const message = data?.message;
  return (
    <>
      <h1>Message {id}</h1>
      <p><a href={to("queues", queue)}>Queue {queue}</a></p>
      <Failure error={error} />
      {data && !message && <p class="quiet">It is not in the queue: it is done, was removed, or never was.</p>}
      {message && (
        <>
          <dl>
            <dt>state</dt><dd>{message.state ?? "ready"}</dd>
            <dt>attempts, failures</dt><dd>{message.attempts ?? 0}, {message.failures ?? 0} of {message.max_attempts ?? "any number"}</dd>
            <dt>key</dt><dd>{message.key ?? "–"}</dd>
            <dt>due</dt><dd>{when(message.position, data.offset)}</dd>
            <dt>last error</dt><dd>{message.last_error ?? "–"}</dd>
          </dl>
          <h2>Lease timeline</h2>
          <Timeline message={message} offset={data.offset} />
          <h2>Value</h2>
          <Value value={message.value} />
          {message.metadata != null && <><h2>Metadata</h2><Value value={message.metadata} /></>}
        </>
      )}
    </>
  );
}

function Timeline({ message, offset }: { message: wire.Message; offset: number }) {
  const endings = message.history ?? [];
  return (
    <ol class="timeline">
      <li>{when(message.created_at, offset)}: put</li>
      {endings.map(([holder, token, since, until, how, error]) => (
        <li>
          {when(since, offset)}: claimed by {holder} with token {token}; {how} at {when(until, offset)}
          {error && <span class="bad"> {short(error, 200)}</span>}
        </li>
      ))}
      {message.state === "leased" && (
        <li>{when(message.since, offset)}: claimed by {message.holder} with token {message.token}, until {when(message.until, offset)}</li>
      )}
      {message.state === "dead" && <li class="bad">{when(message.dead_at, offset)}: dead</li>}
    </ol>
  );
}

let offset: Promise<number> | undefined;

/** What to add to a moment of the store to get one of the wall clock. */
export function wallOffset(client: Holdfast): Promise<number> {
  offset ??= client.about().then((about) => about.wall_offset_us ?? 0);
  return offset;
}
