/** Locks, leaders, semaphores and leases on keys of dicts: who holds them, since when, and who waits. */

import { useState } from "preact/hooks";

import { decodeKey, encodeKey, type wire } from "../../../client/src/index.ts";
import { Act, Ago, Badge, Failure, Fields, Pages, Table, Token } from "../parts.tsx";
import { PAGE } from "../queue_counts.ts";
import { useClient, useLoaded, useMay } from "../state.ts";

const KINDS = ["any", "lock", "election", "semaphore", "rwlock"];

/** The kind and the name of a lease; one that was taken under another key has no kind. */
export function leaseNamed(key: string): [string, string] {
  const parts = decodeKey(key);
  return Array.isArray(parts) && parts.length === 2 ? [String(parts[0]), String(parts[1])] : ["", key];
}

export function Locks() {
  const client = useClient();
  const may = useMay();
  const [asked, setAsked] = useState({ prefix: "", dict: null as string | null });
  const [after, setAfter] = useState<string | null>(null);
  const { data, error, reload } = useLoaded(
    () => client.execute("Leases", { ...asked, after, limit: PAGE }),
    JSON.stringify([asked, after]),
    (found) => found.held.map(({ key }) => `watch:lease:${asked.dict ?? ""}:${key}`),
  );
  const search = (fields: Record<string, string>) => {
    const { kind, name = "", dict } = fields;
    setAfter(null);
    setAsked({ dict: dict || null, prefix: kind === "any" || dict ? (name && JSON.stringify(name).slice(0, -1)) : encodeKey([kind!, name]).slice(0, -2) });
  };
  const breakIt = (key: string, token: number) => (reason: string) => client.execute("Break", { dict: asked.dict, key, reason, token });
  const held = (data?.held ?? []).flatMap((holding) => {
    const leases: (wire.Lease | undefined)[] = holding.leases?.length ? holding.leases : [undefined];
    return leases.map((lease) => ({ holding, lease }));
  });
  const rows = held.map(({ holding, lease }) => {
    const [kind, name] = asked.dict === null ? leaseNamed(holding.key) : ["key", holding.key];
    const mayBreak = asked.dict === null ? may("lease", name, "manage") : may("dict", asked.dict, "manage");
    return [
      kind,
      name,
      lease?.holder ?? <span class="quiet">nobody</span>,
      <Token token={lease?.token} />,
      <Ago moment={lease?.since} />,
      <Ago moment={lease?.until} />,
      holding.capacity == null ? "" : `${holding.used ?? 0} of ${holding.capacity.toLocaleString("en")}`,
      holding.waiting ? <Badge kind="warn">{holding.waiting} wait</Badge> : "",
      lease && mayBreak ? (
        <Act
          label="Break"
          danger
          reason
          act={breakIt(holding.key, lease.token)}
          done={reload}
          confirm={`Take ${kind} ${name} from ${lease.holder}? It may still be at work; the next holder has a higher token, so what is fenced is safe.`}
        />
      ) : "",
    ];
  });
  return (
    <>
      <h1>Locks and leaders</h1>
      <p class="quiet">Who holds what, since when, and who waits. Breaking a lease gives the next holder a higher token, so the old one is fenced out.</p>
      <Fields button="Search" onSubmit={search}>
        <label>Kind <select name="kind">{KINDS.map((kind) => <option>{kind}</option>)}</select></label>
        <label>Name begins with <input name="name" data-search /></label>
        <label>Of a dict's keys <input name="dict" /></label>
      </Fields>
      <Failure error={error} />
      {data && <Table heads={["kind", "name", "holder", "token", "since", "ends", "taken", "waiters", "actions"]} rows={rows} keys={held.map(({ holding, lease }) => `${holding.key}\n${lease?.lease_id}`)} empty="Nothing is held." />}
      <Pages after={after} next={data?.after} go={setAfter}><button type="button" onClick={reload}>Refresh</button></Pages>
    </>
  );
}
