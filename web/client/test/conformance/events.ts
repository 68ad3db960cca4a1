/** The event log and watches that go on after the server was killed. */

import assert from "node:assert/strict";

import { Compacted, type wire } from "../../src/index.ts";
import { type Cases, claimOne, fresh } from "./cases.ts";

async function first(events: AsyncGenerator<wire.Event>, count: number): Promise<wire.Event[]> {
  const seen: wire.Event[] = [];
  for await (const event of events) if (seen.push(event) === count) break;
  return seen;
}

export const events: Cases = {
  "each thing that happens to a message is one event, in order, and the number of a claim is its token": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.put(1, { maxAttempts: 1 });
    const claim = await claimOne(queue);
    await claim.fail("no");
    await queue.redrive();
    const seen = await first(queue.watch(), 5);
    assert.deepEqual(seen.map((event) => event.event), ["put", "claimed", "settled", "buried", "moved"]);
    assert.equal(seen[1]!.number ?? seen[1]!.index, claim.token);
    assert.ok(seen.every((event, n) => n === 0 || event.index > seen[n - 1]!.index));
  },
  "a watch goes on from where it was": async (client) => {
    const dict = client.dict<number>(fresh("d"));
    for (let n = 0; n < 4; n++) await dict.put("k", n);
    const [, second] = await first(dict.watch(), 2);
    const rest = await first(dict.watch({ after: second!.index }), 2);
    assert.ok(rest[0]!.index > second!.index);
    assert.equal(rest.length, 2);
  },
  "a watch sees each event once while the server is killed": async (client) => {
    const queue = client.queue<number>(fresh());
    const watching = first(queue.watch(), 60);
    const put: string[] = [];
    for (let n = 0; n < 60; n++) put.push((await queue.put(n)).id);
    assert.deepEqual((await watching).flatMap((event) => (event.data as { ids: string[] }).ids), put);
  },
  "a number above the newest is of another store": async (client) => {
    await assert.rejects(client.queue(fresh()).watch({ after: Number.MAX_SAFE_INTEGER }).next(), Compacted);
  },
};
