/** Dicts: their entries, edited under compare-and-set. */

import { useState } from "preact/hooks";

import { type Key, encodeKey } from "../../../client/src/index.ts";
import { Act, Badge, Failure, Fields, Pages, Table, Token, short } from "../parts.tsx";
import { PAGE } from "../queue_counts.ts";
import { to, useClient, useLoaded, useMay } from "../state.ts";

export function Dicts() {
  const client = useClient();
  const [prefix, setPrefix] = useState("");
  const [after, setAfter] = useState<string | null>(null);
  const { data, error } = useLoaded(() => client.execute("Names", { kind: "dict", prefix, after, limit: PAGE }), `dicts ${prefix} ${after}`);
  const rows = (data?.settings ?? []).map((one) => [
    <a href={to("dicts", one.name)}>{one.name}</a>,
    /^holdfast-|-(steps|results|progress|errors)$/.test(one.name) ? <Badge>kept by Holdfast</Badge> : "",
  ]);
  return (
    <>
      <h1>Dicts</h1>
      <Fields button="Search" onSubmit={(fields) => (setAfter(null), setPrefix(fields["prefix"] ?? ""))}><label>Name begins with <input name="prefix" data-search /></label></Fields>
      <Failure error={error} />
      {data && <Table heads={["dict", "kind"]} rows={rows} empty="No dicts." />}
      <Pages after={after} next={data?.more && data.settings.at(-1)!.name} go={setAfter} />
    </>
  );
}

const ROUNDED = "It has a whole number that a browser rounds: edit it with `holdfast dict put`.";

/** Whether a browser has lost digits of a number in it, which an edit would write back. */
function isRounded(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && Object.values(value).some(isRounded);
}

interface Edit {
  key: Key | undefined;
  revision: number;
  value: string;
}

export function DictScreen({ name }: { name: string }) {
  const client = useClient();
  const dict = client.dict(name);
  const [prefix, setPrefix] = useState("");
  const [after, setAfter] = useState<{ key: Key } | null>(null);
  const [edited, setEdited] = useState<Edit>();
  const mayWrite = useMay()("dict", name, "write");
  const { data, error, reload } = useLoaded(
    async () => {
      const page = await dict.page({ limit: PAGE, ...(prefix ? { prefix } : {}), ...(after && { after: after.key }) });
      const isThere = page.entries.length > 0 || (await client.execute("Names", { kind: "dict", prefix: name, exact: true })).settings.length > 0;
      return { ...page, isThere };
    },
    JSON.stringify([name, prefix, after]),
    [`watch:dict:${name}`],
  );
  const rows = (data?.entries ?? []).map((entry) => [
    <code>{encodeKey(entry.key)}</code>,
    <code>{short(entry.value)}</code>,
    <Token token={entry.revision} />,
    ...(mayWrite
      ? [
          <span class="acts">
            <button type="button" disabled={isRounded(entry.value)} title={isRounded(entry.value) ? ROUNDED : ""} onClick={() => setEdited({ key: entry.key, revision: entry.revision, value: JSON.stringify(entry.value, null, 2) })}>Edit</button>
            <Act label="Delete" danger act={() => dict.delete(entry.key)} done={reload} confirm={`Delete ${encodeKey(entry.key)}?`} />
          </span>,
        ]
      : []),
  ]);
  return (
    <>
      <h1>Dict {name}</h1>
      <Failure error={error} />
      <Fields button="Search" onSubmit={(fields) => (setAfter(null), setPrefix(fields["prefix"] ?? ""))}><label>Key begins with <input name="prefix" data-search /></label></Fields>
      {mayWrite && <button type="button" onClick={() => setEdited({ key: undefined, revision: 0, value: "null" })}>New entry</button>}
      {data && <Table heads={["key", "value", "revision", ...(mayWrite ? ["actions"] : [])]} rows={rows} keys={data.entries.map(({ key }) => encodeKey(key))} empty={data.isThere ? "No entries." : "There is no dict of this name: the first entry makes it."} />}
      <Pages after={after} next={data?.more && { key: data.entries.at(-1)!.key }} go={setAfter} />
      {edited && <Editor edited={edited} change={setEdited} save={(key, value) => dict.compareAndSet(key, edited.revision, value)} done={() => (setEdited(undefined), reload())} />}
    </>
  );
}

function Editor(props: { edited: Edit; change: (edit: Edit | undefined) => void; save: (key: Key, value: unknown) => Promise<boolean>; done: () => void }) {
  const { edited, change } = props;
  const [keyText, setKeyText] = useState('"new"');
  const save = async () => {
    const key = edited.key === undefined ? (JSON.parse(keyText) as Key) : edited.key;
    if (!(await props.save(key, JSON.parse(edited.value)))) {
      throw new Error(edited.revision ? "Another client has changed it meanwhile: close, and edit the newer value." : "There is an entry under this key already.");
    }
  };
  return (
    <form onSubmit={(event) => event.preventDefault()}>
      <h2>{edited.key === undefined ? "New entry" : <>Edit <code>{encodeKey(edited.key)}</code>, revision {edited.revision}</>}</h2>
      {edited.key === undefined && <label class="quiet">Key as JSON <input value={keyText} onInput={(event) => setKeyText(event.currentTarget.value)} /></label>}
      <label class="quiet">Value as JSON
        <textarea rows={8} cols={80} value={edited.value} onInput={(event) => change({ ...edited, value: event.currentTarget.value })} />
      </label>
      <div class="row">
        <Act label="Save" act={save} done={props.done} />
        <button type="button" onClick={() => change(undefined)}>Close</button>
      </div>
    </form>
  );
}
