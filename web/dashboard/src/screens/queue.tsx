/** One queue: its messages by state, its groups, its settings. */

import { useState } from "preact/hooks";

import type { wire } from "../../../client/src/index.ts";
import { Act, Ago, Badge, Facts, Failure, Fields, Table, Tabs, When, age, short } from "../parts.tsx";
import { PAGE } from "../queue_counts.ts";
import { to, useClient, useLoaded, useMay } from "../state.ts";
import { BulkActs } from "./bulk.tsx";

const STATES = ["ready", "leased", "dead", "buffered", "done"] as const;
export type State = (typeof STATES)[number];

export function QueueScreen({ name, part }: { name: string; part: string }) {
  const client = useClient();
  const { data, error, reload } = useLoaded(
    async () => {
      const [stats, named] = await Promise.all([client.queue(name).stats(), client.execute("Names", { kind: "queue", prefix: name, exact: true })]);
      return { stats, settings: named.settings[0] };
    },
    name,
    [`watch:queue:${name}`],
  );
  const count = (state: State) => {
    const stats = data?.stats;
    return stats && (state === "ready" ? (stats.ready ?? 0) + (stats.delayed ?? 0) : ((stats[state as keyof wire.Stats] as number | undefined) ?? 0));
  };
  const tabs = [
    ...STATES.map((state) => ({ name: state as string, href: to("queues", name, state), count: count(state) })),
    ...(data?.settings?.policy?.groups ? [{ name: "groups", href: to("queues", name, "groups") }] : []),
    { name: "settings", href: to("queues", name, "settings") },
  ];
  return (
    <>
      <h1>Queue {name} {data?.settings?.paused && <Badge kind="warn">paused</Badge>}</h1>
      <Failure error={error} />
      {data && <QueueActs name={name} paused={data.settings?.paused ?? false} done={reload} />}
      <Tabs label="Parts of the queue" tabs={tabs} current={part} />
      {part === "groups" ? <Groups name={name} /> : part === "settings" ? <Settings settings={data?.settings} /> : <Messages key={part} name={name} state={part as State} />}
    </>
  );
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

function Messages({ name, state }: { name: string; state: State }) {
  const client = useClient();
  const queue = client.queue(name);
  const [which, setWhich] = useState<wire.Filter>({});
  const [after, setAfter] = useState<unknown[] | null>(null);
  const { data, error, reload } = useLoaded(
    () => queue.browse(state, { which, after: after as never, limit: PAGE }),
    JSON.stringify([name, state, which, after]),
    [`watch:queue:${name}`],
  );
  const search = (fields: Record<string, string>) => {
    const text = (field: string) => fields[field] || null;
    const prefix = text("key");
    setAfter(null);
    setWhich({ label: text("label"), group: text("group"), error_contains: text("error"), key_prefix: prefix && JSON.stringify(prefix).slice(0, -1) });
  };
  const done = () => (setAfter(null), reload());
  return (
    <>
      <Fields button="Search" onSubmit={search}>
        <label>Key begins with <input name="key" data-search /></label>
        <label>Label <input name="label" /></label>
        <label>Group <input name="group" /></label>
        <label>Error contains <input name="error" /></label>
      </Fields>
      <Failure error={error} />
      {state !== "leased" && state !== "buffered" && <BulkActs name={name} state={state} which={which} done={done} />}
      {state === "dead" && data && <ByError messages={data.messages} onError={(error_contains) => (setAfter(null), setWhich({ error_contains }))} />}
      {data && <MessageTable name={name} state={state} messages={data.messages} done={done} />}
      <div class="row">
        {after !== null && <button type="button" onClick={() => setAfter(null)}>First page</button>}
        {data?.after && <button type="button" onClick={() => setAfter(data.after as unknown[])}>Next page</button>}
      </div>
    </>
  );
}

/** The first word of an error, which is the class of an exception. */
export function errorClass(message: wire.Message): string {
  return (message.last_error ?? "no error").split(/[:\n]/)[0]!.trim();
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

function MessageTable(props: { name: string; state: State; messages: wire.Message[]; done: () => void }) {
  const client = useClient();
  const mayManage = useMay()("queue", props.name, "manage");
  const move = (id: string, target: "ready" | "gone") => client.execute("Move", { queue: props.name, to: target, ids: [id], state: props.state });
  const rows = props.messages.map((message) => [
    <a href={to("message", props.name, message.id)}>{message.id}</a>,
    message.key ?? "",
    message.group ?? "",
    message.attempts ?? 0,
    <Ago moment={message.created_at} />,
    props.state === "leased" ? <>{message.holder}, ends <Ago moment={message.until} /></> : short(message.last_error ?? ""),
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
  return <Table heads={heads} rows={rows} empty={`No ${props.state} messages that match.`} />;
}

function Groups({ name }: { name: string }) {
  const client = useClient();
  const [prefix, setPrefix] = useState("");
  const mayManage = useMay()("queue", name, "manage");
  const { data, error, reload } = useLoaded(() => client.execute("Groups", { queue: name, prefix, limit: PAGE }), `${name} ${prefix}`, [`watch:queue:${name}`]);
  const set = (group: string, change: object) => client.execute("Configure", { kind: "queue", name, group, ...change });
  const rows = (data?.lanes ?? []).map((lane) => {
    const group = lane.name;
    const isPaused = lane.own?.paused ?? false;
    return [
      group === "" ? <span class="quiet">without a group</span> : group,
      lane.open ? <Badge kind="good">open</Badge> : isPaused ? <Badge kind="warn">paused</Badge> : <Badge>waits</Badge>,
      lane.live ?? 0,
      lane.own?.limit ?? "",
      lane.own?.weight ?? "",
      <When moment={lane.wakes ?? null} />,
      ...(mayManage ? [<Act label={isPaused ? "Resume" : "Pause"} act={() => set(group, { paused: !isPaused })} done={reload} />] : []),
    ];
  });
  return (
    <>
      <Fields button="Search" onSubmit={(fields) => setPrefix(fields["prefix"] ?? "")}><label>Group begins with <input name="prefix" data-search /></label></Fields>
      <Failure error={error} />
      {data && <Table heads={["group", "state", "in work", "own limit", "own weight", "opens at", ...(mayManage ? ["actions"] : [])]} rows={rows} empty="No group has messages or settings." />}
      {data?.more && <p class="quiet">There are more: search for the beginning of a name.</p>}
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
        ...policy.map(([name, value]): [string, string] => [name.replaceAll("_", " "), name.endsWith("_s") ? age(value as number) : short(value)]),
      ]}
    />
  );
}
