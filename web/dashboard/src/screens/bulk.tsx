/** Actions on all messages of a state that match a search: a page at a time, with progress, and they can be stopped. */

import { useRef, useState } from "preact/hooks";

import type { wire } from "../../../client/src/index.ts";
import { Act } from "../parts.tsx";
import { useClient, useMay } from "../state.ts";
import type { State } from "./queue.tsx";

const AT_ONCE = 500;

export function BulkActs({ name, state, which, done }: { name: string; state: State; which: wire.Filter; done: () => void }) {
  const client = useClient();
  const [moved, setMoved] = useState<number>();
  const isStopped = useRef(false);
  if (!useMay()("queue", name, "manage")) return null;
  const all = async (target: "ready" | "gone") => {
    isStopped.current = false;
    let total = 0;
    for (let after: unknown[] | null | undefined = null; after !== undefined && !isStopped.current; ) {
      const page: wire.Browsed = await client.queue(name).browse(state, { which, after: after as never, limit: AT_ONCE });
      if (!page.messages.length) break;
      const ids = page.messages.map((message) => message.id);
      total += (await client.execute("Move", { queue: name, to: target, ids, state })).ids.length;
      setMoved(total);
      after = (page.after as unknown[] | null) ?? undefined;
    }
  };
  const finished = () => (setMoved(undefined), done());
  const matches = Object.values(which).some((value) => value != null) ? "all that match" : "all";
  return (
    <div class="row">
      {state === "dead" && <Act label={`Redrive ${matches}`} act={() => all("ready")} done={finished} confirm={`Give ${matches} dead letters of ${name} another chance?`} />}
      <Act label={`Remove ${matches}`} danger act={() => all("gone")} done={finished} confirm={`Remove ${matches} ${state} messages of ${name}? They cannot be brought back.`} />
      {moved !== undefined && <span role="status">{moved.toLocaleString("en")} so far <button type="button" onClick={() => (isStopped.current = true)}>Stop</button></span>}
    </div>
  );
}
