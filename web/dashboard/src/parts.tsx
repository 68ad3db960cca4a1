/** Parts of screens: tables, values, moments, buttons that act. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type { HoldfastError } from "../../client/src/index.ts";

export function Table({ heads, rows, empty }: { heads: string[]; rows: ComponentChildren[][]; empty: string }) {
  if (!rows.length) return <p class="quiet">{empty}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={heads.join(", ")}>
      <table>
        <thead>
          <tr>{heads.map((head) => <th scope="col">{head}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>{row.map((cell) => <td class={typeof cell === "number" ? "number" : ""}>{cell}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Failure({ error }: { error: HoldfastError | undefined }) {
  return error ? <p class="note" role="alert">{error.message}</p> : null;
}

export function Value({ value }: { value: unknown }) {
  return <pre>{JSON.stringify(value, null, 2)}</pre>;
}

export function short(value: unknown, most = 80): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Seconds for people. */
export function age(seconds: number | null | undefined): string {
  if (seconds == null) return "–";
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** A moment of the store, with the offset to the wall clock, for people. */
export function when(moment: number | null | undefined, offsetUs: number): string {
  if (!moment || moment > 4e18) return "–";
  return new Date((moment + offsetUs) / 1000).toLocaleString();
}

/** A button that does something and says what came of it; `confirm` is asked first. */
export function Act(props: { label: string; act: () => Promise<unknown>; done?: () => void; confirm?: string; danger?: boolean }) {
  const [state, setState] = useState<{ busy?: boolean; failed?: string }>({});
  const press = async () => {
    if (props.confirm && !window.confirm(props.confirm)) return;
    setState({ busy: true });
    try {
      await props.act();
      setState({});
      props.done?.();
    } catch (error) {
      setState({ failed: (error as Error).message });
    }
  };
  return (
    <span>
      <button type="button" class={props.danger ? "danger" : ""} disabled={state.busy ?? false} onClick={press}>{props.label}</button>
      {state.failed && <span class="bad" role="alert"> {state.failed}</span>}
    </span>
  );
}
