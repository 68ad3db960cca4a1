/** The audit, and the guarantees of the server. */

import { useState } from "preact/hooks";

import type { wire } from "../../../client/src/index.ts";
import { Facts, Failure, Table, short } from "../parts.tsx";
import { useAbout, useClient, useLoaded, useMay } from "../state.ts";

const RECORDS = 100;

export function Audit() {
  const client = useClient();
  const [after, setAfter] = useState("");
  const { data, error } = useLoaded(() => client.get<wire.AuditPage>(`/v1/audit?limit=${RECORDS}${after && `&after=${after}`}`), `audit ${after}`);
  const rows = (data?.records ?? []).map((record) => [
    new Date(record.at * 1000).toLocaleString(),
    record.who,
    record.act,
    record.what,
    <code>{short(record.facts ?? {}, 120)}</code>,
    record.where,
    record.namespace,
  ]);
  return (
    <>
      <h1>Audit</h1>
      <Failure error={error} />
      {data && <Table heads={["at", "who", "act", "what", "facts", "from", "namespace"]} rows={rows} empty="No acts of administrators." />}
      {data?.more && <button type="button" onClick={() => setAfter(data.after ?? "")}>Next page</button>}
    </>
  );
}

export function Health() {
  const about = useAbout();
  const may = useMay();
  const { guarantees, limits } = about;
  return (
    <>
      <h1>Health and guarantees</h1>
      <Facts
        facts={[
          ["server", `Holdfast ${about.version}, protocol ${about.protocol}`],
          ["store", guarantees.engine],
          ["acknowledged work survives", guarantees.survives],
          ["shared by", guarantees.shared_by],
          ["clock", guarantees.clock],
          ...Object.entries(guarantees.settings ?? {}).map(([name, value]): [string, string] => [name, String(value)]),
          ["your token allows", (about.scopes ?? []).join(" ")],
        ]}
      />
      <h2>Limits</h2>
      <Facts facts={Object.entries(limits).map(([name, value]): [string, string] => [name.replaceAll("_", " "), value.toLocaleString("en")])} />
      {may("server", "metrics", "read") && <p class="quiet">Metrics for Prometheus are at /metrics.</p>}
    </>
  );
}
