/** Several commands as one step. */

import assert from "node:assert/strict";

import type { Holdfast, Step, wire } from "../../src/index.ts";
import { type Cases, claimOne, empty, fresh, refused } from "./cases.ts";

async function untouched(client: Holdfast, queue: string, bad: Step): Promise<void> {
  await assert.rejects(client.together([{ type: "Put", queue, items: [{ id: "never", value: 1 }] }, bad]));
  assert.deepEqual((await client.execute("Browse", { queue, ids: ["never"] })).messages, []);
}

export const together: Cases = {
  "all of a step happens, and the answers come in the order of the commands": async (client) => {
    const [queue, dict] = [client.queue<string>(fresh()), fresh("d")];
    await queue.put("work");
    const claim = await claimOne(queue);
    const answers = await client.together([
      { type: "Settle", receipts: [claim.receipt], all_or_none: true },
      { type: "Put", queue: queue.name, items: [{ id: "next", value: "next" }] },
      { type: "Write", dict, changes: [{ key: '"done"', value: claim.id, expect: "absent" }] },
    ]);
    assert.deepEqual(answers.slice(0, 2), [{ held: [true] }, { ids: ["next"], created: [true] }]);
    assert.equal((answers[2] as wire.Written[])[0]!.entry!.value, claim.id);
  },
  "whatever fails refuses everything": async (client) => {
    const [queue, dict] = [client.queue<number>(fresh()), client.dict<number>(fresh("d"))];
    await queue.put(1);
    const claim = await claimOne(queue);
    await dict.put("k", 1);
    await claim.renew(0);
    await untouched(client, queue.name, { type: "Settle", receipts: [claim.receipt], all_or_none: true });
    await untouched(client, queue.name, { type: "Write", dict: dict.name, changes: [{ key: '"k"', value: 2, expect: "absent" }] });
    await untouched(client, queue.name, { type: "Write", dict: dict.name, changes: [{ key: '"k"', value: 2, expect: "revision", revision: 1 }] });
    assert.equal(await dict.get("k"), 1);
  },
  "settling and claiming the next is one step": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.putMany([1, 2]);
    const claim = await claimOne(queue);
    const [, claimed] = await client.together([{ type: "Settle", receipts: [claim.receipt], all_or_none: true }, { type: "Claim", queue: queue.name, holder: "h", lease_s: 60 }]);
    assert.equal((claimed as wire.Claimed).messages[0]!.value, 2);
  },
  "puts to several queues are all or none": async (client) => {
    const [free, full] = [fresh(), fresh()];
    await client.execute("Configure", { kind: "queue", name: full, maxsize: 1 });
    await client.queue(full).put(1);
    const step = [free, full].map((queue) => ({ type: "Put" as const, queue, items: [{ id: "m", value: 1 }] }));
    await assert.rejects(client.together(step), refused("queue_full"));
    await empty(client.queue(free));
  },
  "what a step reads is the state before it": async (client) => {
    const dict = fresh("d");
    await client.dict(dict).put("k", "before");
    const [entries] = await client.together([{ type: "Read", dict, keys: ['"k"'] }, { type: "Write", dict, changes: [{ key: '"k"', value: "after" }] }]);
    assert.equal((entries as wire.Entries).entries[0]!.value, "before");
    assert.equal(await client.dict(dict).get("k"), "after");
  },
};
