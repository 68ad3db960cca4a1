/** Actions on all messages of a state that match a search: a page at a time, with progress, and they can be stopped. */

import { useRef, useState } from "preact/hooks";

import type { Holdfast, wire } from "../../../client/src/index.ts";
import { Act } from "../parts.tsx";
import { useClient, useMay } from "../state.ts";
import type { State } from "./queue.tsx";

const AT_ONCE = 200;

interface Bulk {
  queue: string;
  state: State;
  which: wire.Filter;
  target: "ready" | "gone";
}

/** Move one page after another until `isOver`; `told` hears how many went so far. */
async function moveAll(client: Holdfast, { queue, state, which, target }: Bulk, told: (total: number) => void, isOver: () => boolean): Promise<void> {
  let total = 0;
  let after: wire.Browsed["after"] = null;
  do {
    const page: wire.Browsed = await client.queue(queue).browse(state, { which, after, limit: AT_ONCE });
    const ids = page.messages.map((message) => message.id);
    // None of a page may match, and some of the next.
    if (ids.length && !isOver()) total += (await client.execute("Move", { queue, to: target, ids, state })).ids.length;
    told(total);
    after = page.after ?? null;
  } while (after !== null && !isOver());
}

interface BulkActsProps {
  name: string;
  state: State;
  which: wire.Filter;
  done: () => void;
  /** What they are called, in the questions. */
  what?: string;
}

export function BulkActs({ name, state, which, done, what }: BulkActsProps) {
  const client = useClient();
  const [moved, setMoved] = useState<number>();
  const isStopped = useRef(false);
  if (!useMay()("queue", name, "manage")) return null;
  const all = async (target: "ready" | "gone") => {
    isStopped.current = false;
    try {
      await moveAll(client, { queue: name, state, which, target }, setMoved, () => isStopped.current);
    } finally {
      setMoved(undefined);
    }
  };
  const matches = Object.values(which).some((value) => value != null) ? "all that match" : "all";
  const [label, of] = what ? ["", what] : [` ${matches}`, `${matches} ${state} messages`];
  return (
    <span class="acts">
      {state === "dead" && <Act label={`Redrive${label}`} act={() => all("ready")} done={done} confirm={`Give ${of} of ${name} another chance?`} />}
      <Act label={`Remove${label}`} danger act={() => all("gone")} done={done} confirm={`Remove ${of} of ${name}? They cannot be brought back.`} />
      {moved !== undefined && <span role="status">{moved.toLocaleString("en")} so far <button type="button" onClick={() => (isStopped.current = true)}>Stop</button></span>}
    </span>
  );
}
