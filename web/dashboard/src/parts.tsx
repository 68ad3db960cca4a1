/** Parts of screens: tables, tiles, values, moments, and buttons that act. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import type { HoldfastError } from "../../client/src/index.ts";
import { useOffset } from "./state.ts";

export type Kind = "good" | "bad" | "warn" | "info";

/**
 * Rows under heads. A column in which no row has anything is left out; figures stand on the right, and what is done with a row at its end.
 * Keys name the rows that have buttons: what a button asks or says stays with its row while others come and go.
 */
export function Table({ heads, rows, keys, empty }: { heads: string[]; rows: ComponentChildren[][]; keys?: string[]; empty: string }) {
  if (!rows.length) return <p class="quiet">{empty}</p>;
  const columns = heads.map((head, place) => ({ head, place, look: lookOf(head, rows.map((row) => row[place])) })).filter(({ look }) => look !== "empty");
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={heads.join(", ")}>
      <table>
        <thead>
          <tr>{columns.map(({ head, look }) => <th key={head} scope="col" class={look}>{head}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={keys?.[place]}>{columns.map(({ head, place, look }) => <td key={head} class={look} data-head={head}><div>{figure(row[place])}</div></td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function lookOf(head: string, cells: ComponentChildren[]): string {
  if (cells.every((cell) => cell == null || cell === "" || cell === false)) return "empty";
  if (head === "actions") return "actions";
  return cells.every(isFigure) ? "number" : "";
}

/** Whether it is a figure, or a link that says one. */
function isFigure(cell: ComponentChildren): boolean {
  if (typeof cell === "object" && cell !== null && "props" in cell && cell.type === "a") return isFigure(cell.props.children);
  return typeof cell === "number" || (typeof cell === "string" && FIGURE.test(cell));
}

/** A figure with its unit, or none. */
const FIGURE = /^([\d.,]+( %| ms| s| min| h| d)?|[–…]?)$/;

function figure(cell: ComponentChildren): ComponentChildren {
  return typeof cell === "number" ? cell.toLocaleString("en") : cell;
}

/** A figure with its name, and where it leads. */
export function Tile({ name, value, href, kind, children }: { name: string; value: ComponentChildren; href?: string | undefined; kind?: Kind | undefined; children?: ComponentChildren }) {
  const inside = (
    <>
      <span class="quiet">{name}</span>
      <strong class={kind ?? ""}>{figure(value)}</strong>
      <span class="quiet small">{children}</span>
    </>
  );
  return href ? <a class="tile" href={href}>{inside}</a> : <div class="tile">{inside}</div>;
}

export function Tabs({ label, tabs, current }: { label: string; tabs: { name: string; href: string; count?: number | undefined }[]; current: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ name, href, count }) => (
        <a href={href} {...(name === current ? { "aria-current": "page" as const } : {})}>
          {name}{count === undefined ? "" : <span class={name === "dead" && count ? "count bad" : "count"}>{count.toLocaleString("en")}</span>}
        </a>
      ))}
    </nav>
  );
}

export function Failure({ error }: { error: HoldfastError | undefined }) {
  return error ? <p class="note" role="alert">{error.message}</p> : null;
}

export function Badge({ kind, children }: { kind?: Kind | undefined; children: ComponentChildren }) {
  return <span class={`badge ${kind ?? ""}`}>{children}</span>;
}

export function Value({ value }: { value: unknown }) {
  return <pre tabIndex={0}>{JSON.stringify(value, null, 2) ?? "undefined"}</pre>;
}

export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  const known = facts.filter(([, fact]) => fact != null && fact !== false && fact !== "" && fact !== "–");
  return <dl>{known.map(([name, fact]) => <><dt>{name}</dt><dd>{fact}</dd></>)}</dl>;
}

export function short(value: unknown, most = 80): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

const ID_MOST = 24;

/** An id on one line: a long one by its beginning and its end, in which ids of one moment differ. */
export function Id({ id }: { id: string }) {
  return id.length > ID_MOST ? <span class="id" title={id}>{id.slice(0, 9)}…{id.slice(-12)}</span> : <span class="id">{id}</span>;
}

/** A number that is a name: it is compared and copied, not counted. */
export function Token({ token }: { token: number | null | undefined }) {
  return token == null ? null : <span class="id">{token}</span>;
}

/** Seconds for people. */
export function age(seconds: number | null | undefined): string {
  if (seconds == null) return "–";
  if (seconds < 0.0995) return `${Math.round(seconds * 1_000)} ms`;
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 && !Number.isInteger(seconds) ? 1 : 0)} s`;
  if (seconds < 7200 && seconds !== 3600) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${(seconds / 3600).toFixed(seconds % 3600 ? 1 : 0)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** How often a minute, for people. */
export function perMinute(perS: number): string {
  const rate = perS * 60;
  return rate === 0 || rate >= 10 ? Math.round(rate).toLocaleString("en") : rate.toFixed(1);
}

/** A share of one, for people; nothing where nothing ended. */
export function percent(share: number | null | undefined): string {
  if (share == null) return "–";
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

/** A date for people, the same on every screen: sortable, in their time zone. */
export function dated(date: Date): string {
  return date.toLocaleString("sv-SE");
}

/** Text with dates as a server writes them, made like all others. */
export function withDates(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, (date) => dated(new Date(date)));
}

/** How long ago or ahead a date is, kept true while it is shown; with `plain` only how long. */
export function Since({ at, plain }: { at: Date | string | number | null | undefined; plain?: boolean }) {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((tick) => tick + 1), 5_000);
    return () => clearInterval(timer);
  }, []);
  if (at == null) return <>–</>;
  const date = new Date(at);
  const seconds = (Date.now() - date.getTime()) / 1000;
  const said = plain ? age(Math.max(0, seconds)) : seconds >= 0 ? `${age(seconds)} ago` : `in ${age(-seconds)}`;
  return <time dateTime={date.toISOString()} title={dated(date)}>{said}</time>;
}

/** A moment of the store for people. */
export function When({ moment }: { moment: number | null | undefined }) {
  const offset = useOffset();
  if (!moment || moment > 4e18) return <>–</>;
  const date = new Date((moment + offset) / 1000);
  return <time dateTime={date.toISOString()} title={date.toISOString()}>{dated(date)}</time>;
}

/** How long ago or ahead a moment of the store is; with `plain` only how long. */
export function Ago({ moment, plain = false }: { moment: number | null | undefined; plain?: boolean }) {
  const offset = useOffset();
  return <Since plain={plain} at={!moment || moment > 4e18 ? null : (moment + offset) / 1000} />;
}

/** Leads back to the first page, and on to the next where there is one. */
export function Pages<Place>({ after, next, go, children }: { after: Place | null; next: Place | null | undefined | false; go: (after: Place | null) => void; children?: ComponentChildren }) {
  return (
    <div class="row">
      {after !== null && <button type="button" onClick={() => go(null)}>First page</button>}
      {next != null && next !== false && <button type="button" onClick={() => go(next)}>Next page</button>}
      {children}
    </div>
  );
}

interface ActProps {
  label: string;
  /** A text that it gives is shown. */
  act: (reason: string) => Promise<unknown>;
  done?: () => void;
  /** What is asked first. */
  confirm?: string;
  /** Whether a reason has to be given. */
  reason?: boolean;
  danger?: boolean;
}

/** A button that does something and says what came of it. What it has asked is what it does, whatever the screen shows meanwhile. */
export function Act(props: ActProps) {
  const [state, setState] = useState<{ busy?: boolean; failed?: string; said?: string; asked?: ActProps }>({});
  const run = async ({ act, done }: ActProps, reason: string) => {
    setState({ busy: true });
    try {
      const said = await act(reason);
      setState(typeof said === "string" ? { said } : {});
      done?.();
    } catch (error) {
      setState({ failed: (error as Error).message });
    }
  };
  const press = () => (props.confirm ? setState({ asked: props }) : void run(props, ""));
  const { asked } = state;
  return (
    <span class="act">
      <button type="button" class={props.danger ? "danger" : ""} disabled={state.busy ?? false} onClick={press}>{props.label}</button>
      {state.failed && <span class="bad" role="alert"> {state.failed}</span>}
      {state.said && <span role="status"> {state.said}</span>}
      {asked && <Question {...asked} no={() => setState({})} yes={(reason) => run(asked, reason)} />}
    </span>
  );
}

function Question(props: ActProps & { no: () => void; yes: (reason: string) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    props.yes(String(new FormData(event.currentTarget as HTMLFormElement).get("reason") ?? ""));
  };
  return (
    <dialog ref={dialog} onClose={props.no} aria-label={props.label}>
      <form onSubmit={submit}>
        <p>{props.confirm}</p>
        {props.reason && <label>Reason <input name="reason" required autocomplete="off" /></label>}
        <div class="row end">
          <button type="button" onClick={props.no}>Keep it</button>
          <button type="submit" class={props.danger ? "danger" : ""}>{props.label}</button>
        </div>
      </form>
    </dialog>
  );
}

/** A form whose fields are given by name when it is submitted; it says what failed. */
export function Fields({ button, onSubmit, children }: { button: string; onSubmit: (fields: Record<string, string>) => unknown; children: ComponentChildren }) {
  const [failed, setFailed] = useState<string>();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setFailed(undefined);
    try {
      await onSubmit(Object.fromEntries([...form].map(([name, value]) => [name, String(value).trim()])));
    } catch (error) {
      setFailed((error as Error).message);
    }
  };
  return (
    <form class="row" onSubmit={submit}>
      {children}
      <button type="submit">{button}</button>
      {failed && <span class="bad" role="alert">{failed}</span>}
    </form>
  );
}
