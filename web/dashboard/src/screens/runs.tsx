/** Durable jobs that have recorded steps, by queue. */

import { useState } from "preact/hooks";

import type { Key } from "../../../client/src/index.ts";
import { Badge, Failure, Fields, Id, Table } from "../parts.tsx";
import { to, useClient, useLoaded } from "../state.ts";

const STEPS = "-steps";
const ROWS = 200;

interface Head {
  version?: unknown;
  waits?: string[];
  is_cancelled?: boolean;
}

/** The heads of jobs have keys of one part, their steps longer ones. */
function isHead(key: Key): key is readonly [string] | string {
  return typeof key === "string" || (Array.isArray(key) && key.length === 1);
}

export function Runs({ queue }: { queue: string | undefined }) {
  const client = useClient();
  const [after, setAfter] = useState<Key>();
  const queues = useLoaded(async () => (await client.execute("Names", { kind: "dict", limit: 200 })).settings.map(({ name }) => name).filter((name) => name.endsWith(STEPS)), "dicts of steps");
  const chosen = queue ?? queues.data?.[0]?.slice(0, -STEPS.length);
  const { data, error } = useLoaded(
    async () => (chosen ? client.dict<Head>(`${chosen}${STEPS}`).entries({ limit: ROWS, ...(after === undefined ? {} : { after }) }) : []),
    JSON.stringify([chosen, after]),
    chosen ? [`watch:dict:${chosen}${STEPS}`] : [],
  );
  const rows = (data ?? []).filter(({ key }) => isHead(key)).map(({ key, value }) => {
    const id = typeof key === "string" ? key : String((key as readonly Key[])[0]);
    return [
      <a href={to("message", chosen!, id)}><Id id={id} /></a>,
      value.version == null ? "" : String(value.version),
      (value.waits ?? []).join(", ") || "runs, or is due",
      value.is_cancelled ? <Badge kind="warn">asked to end</Badge> : "",
    ];
  });
  return (
    <>
      <h1>Durable jobs</h1>
      <p class="quiet">Jobs that have recorded steps and are not over: what each waits for.</p>
      <Failure error={queues.error ?? error} />
      {queues.data && queues.data.length > 0 && (
        <Fields button="Show" onSubmit={(fields) => (location.hash = to("runs", fields["queue"] ?? ""))}>
          <label>Queue <select name="queue" value={chosen ?? ""}>{queues.data.map((name) => <option>{name.slice(0, -STEPS.length)}</option>)}</select></label>
        </Fields>
      )}
      {(data || queues.data) && <Table heads={["job", "version", "waits for", ""]} rows={rows} empty="No durable job has recorded steps." />}
      {data?.length === ROWS && <button type="button" onClick={() => setAfter(data.at(-1)!.key)}>Next page</button>}
    </>
  );
}
