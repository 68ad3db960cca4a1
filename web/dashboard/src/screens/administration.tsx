/** Tokens, the audit, and the guarantees of the server. */

import { useState } from "preact/hooks";

import type { wire } from "../../../client/src/index.ts";
import { Badge, Facts, Failure, Id, Pages, Since, Table, Tile, dated, short } from "../parts.tsx";
import { PAGE } from "../queue_counts.ts";
import { useAbout, useClient, useLoaded, useMay } from "../state.ts";
import { SURVIVES } from "./overview.tsx";

export function Tokens() {
  const client = useClient();
  const { data, error } = useLoaded(() => client.get<wire.TokenPage>("/v1/tokens"), "tokens");
  const at = (moment: number | null | undefined) => (moment == null ? null : moment * 1000);
  const rows = (data?.tokens ?? []).map((token) => [
    <Id id={token.id} />,
    token.name,
    <>{token.scopes.map((scope) => <Badge kind={scope === "admin" ? "warn" : undefined}>{scope}</Badge>)}</>,
    token.namespaces.join(", "),
    <Since at={at(token.created_at)} />,
    token.expires_at == null ? "never" : <Since at={at(token.expires_at)} />,
    token.last_used_at == null ? <span class="quiet">not yet</span> : <Since at={at(token.last_used_at)} />,
  ]);
  return (
    <>
      <h1>Tokens</h1>
      <p class="quiet">Who may do what. They are made and revoked where the store is: <code class="inline">holdfast token create</code> and <code class="inline">holdfast token revoke ID</code>.</p>
      <Failure error={error} />
      {data && <Table heads={["id", "name", "scopes", "namespaces", "made", "expires", "last used"]} rows={rows} empty="" />}
      {data && !rows.length && <p class="note">This server asks for no tokens: whoever reaches it may do everything.</p>}
      {data?.more && <p class="quiet">There are more: see `holdfast token list`.</p>}
    </>
  );
}

export function Audit() {
  const client = useClient();
  const [after, setAfter] = useState<string | null>(null);
  const { data, error } = useLoaded(() => client.get<wire.AuditPage>(`/v1/audit?newest=true&limit=${PAGE}&after=${after ?? ""}`), `audit ${after}`, ["watch:audit"]);
  const rows = (data?.records ?? []).map((record) => [
    <time dateTime={new Date(record.at * 1000).toISOString()}>{dated(new Date(record.at * 1000))}</time>,
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
      <p class="quiet">Every administrative act, with who did it; the newest first, for 90 days.</p>
      <Failure error={error} />
      {data && <Table heads={["at", "who", "act", "what", "facts", "from", "namespace"]} rows={rows} empty="No acts of administrators." />}
      <Pages after={after} next={data?.more && data.after} go={setAfter} />
    </>
  );
}

export function Health() {
  const about = useAbout();
  const may = useMay();
  const client = useClient();
  const { data, error } = useLoaded(() => client.get<Record<string, boolean>>("/readyz"), "health");
  const { guarantees, limits } = about;
  return (
    <>
      <h1>Health and guarantees</h1>
      <Failure error={error} />
      <div class="tiles">
        <Tile name="store" value={data ? "answers" : "…"} kind={data ? "good" : undefined}>{guarantees.engine}</Tile>
        <Tile name="acknowledged work survives" value={guarantees.survives === "nothing" ? "no restart" : guarantees.survives} kind={guarantees.survives === "nothing" ? "bad" : "good"}>{SURVIVES[guarantees.survives]}</Tile>
        <Tile name="server" value={about.version}>protocol {about.protocol}</Tile>
      </div>
      <h2>Guarantees</h2>
      <Facts
        facts={[
          ["shared by", guarantees.shared_by],
          ["clock", guarantees.clock],
          ...Object.entries(guarantees.settings ?? {}).map(([name, value]): [string, string] => [name, String(value)]),
          ["your token allows", <>{(about.scopes ?? []).map((scope) => <Badge>{scope}</Badge>)}</>],
        ]}
      />
      <h2>Limits</h2>
      <Facts facts={Object.entries(limits).map(([name, value]): [string, string] => [name.replaceAll("_", " "), value.toLocaleString("en")])} />
      <p class="quiet"><code class="inline">holdfast doctor</code>, where the store is, looks at its schema, pooler and space too.{may("server", "metrics", "read") && " Metrics for Prometheus are at /metrics."}</p>
    </>
  );
}
