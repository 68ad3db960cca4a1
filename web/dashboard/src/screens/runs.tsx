/** Durable jobs that have recorded steps, by queue. */

import { useState } from "preact/hooks";

import type { Holdfast, Key } from "../../../client/src/index.ts";
import { Badge, Failure, Fields, Id, Pages, Table } from "../parts.tsx";
import { to, useClient, useLoaded } from "../state.ts";

const STEPS = "-steps";
const ROWS = 200;
const DICTS = 200;

interface Head {
  version?: unknown;
  waits?: string[];
  is_cancelled?: boolean;
}

/** The heads of jobs have keys of one part, their steps longer ones. */
function isHead(key: Key): key is readonly [string] | string {
  return typeof key === "string" || (Array.isArray(key) && key.length === 1);
}

/** Queues of durable jobs, as far as a page of dicts goes; others can be asked for by name. */
async function readQueuesOfSteps(client: Holdfast): Promise<string[]> {
  const { settings } = await client.execute("Names", { kind: "dict", limit: DICTS });
  return settings.map(({ name }) => name).filter((name) => name.endsWith(STEPS)).map((name) => name.slice(0, -STEPS.length));
}

export function Runs({ queue }: { queue: string | undefined }) {
  const client = useClient();
  const [after, setAfter] = useState<{ key: Key } | null>(null);
  const queues = useLoaded(() => readQueuesOfSteps(client), "dicts of steps");
  const chosen = queue ?? queues.data?.[0];
  const { data, error } = useLoaded(
    async () => (chosen ? client.dict<Head>(`${chosen}${STEPS}`).page({ limit: ROWS, ...(after && { after: after.key }) }) : undefined),
    JSON.stringify([chosen, after]),
    chosen ? [`watch:dict:${chosen}${STEPS}`] : [],
  );
  const rows = (data?.entries ?? []).filter(({ key }) => isHead(key)).map(({ key, value }) => {
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
          <label>Queue <input name="queue" list="queues" required defaultValue={chosen ?? ""} data-search /></label>
          <datalist id="queues">{queues.data.map((name) => <option value={name} />)}</datalist>
        </Fields>
      )}
      {(data || queues.data) && <Table heads={["job", "version", "waits for", ""]} rows={rows} empty={data?.more ? "Only steps are on this page: see the next." : "No durable job has recorded steps."} />}
      <Pages after={after} next={data?.more && { key: data.entries.at(-1)!.key }} go={setAfter} />
    </>
  );
}
