/** A command that is sent again under the same id is answered again, not applied again. */

import assert from "node:assert/strict";

import { type Holdfast, type wire, newId } from "../../src/index.ts";
import { type Cases, claimOne, fresh } from "./cases.ts";

async function twice<T>(client: Holdfast, route: string, body: object): Promise<[T, T]> {
  const command = { id: newId(), ...body };
  return [await client.post<T>(`/v1/${route}`, command), await client.post<T>(`/v1/${route}`, command)];
}

async function same<T>(client: Holdfast, route: string, body: object): Promise<T> {
  const [first, second] = await twice<T>(client, route, body);
  assert.deepEqual(second, first);
  return first;
}

export const retries: Cases = {
  "a repeated put adds nothing": async (client) => {
    const queue = fresh();
    await same(client, "put", { queue, items: [{ id: "a", value: 1 }, { id: "b", value: 2, key: '"k"' }] });
    assert.equal((await client.queue(queue).stats()).ready, 2);
  },
  "a repeated claim answers the same messages": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.putMany([1, 2]);
    const answers = await twice<wire.Claimed>(client, "claim", { queue: queue.name, holder: "h", lease_s: 60 });
    // Fields with their default value may be there or left out.
    const [first, second] = answers.map(({ messages }) => messages.map(({ id, value, token, until }) => [id, value, token, until]));
    assert.deepEqual(second, first);
    assert.equal(first![0]![1], 1);
    assert.equal((await queue.stats()).ready, 1);
  },
  "a repeated take gives the values again": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.putMany([1, 2]);
    assert.equal((await same<wire.Claimed>(client, "claim", { queue: queue.name, take: true })).messages[0]!.value, 1);
    assert.equal((await queue.stats()).ready, 1);
  },
  "a repeated failure counts once": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.put(1);
    const claim = await claimOne(queue);
    await same(client, "settle", { receipts: [claim.receipt], to: "ready", counts: true, error: "no" });
    assert.equal((await queue.browse()).messages[0]!.failures, 1);
  },
  "a repeated move moves once": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.putMany([1, 2]);
    assert.equal((await same<wire.Moved>(client, "move", { queue: queue.name, to: "gone", state: "ready", limit: 1 })).ids.length, 1);
    assert.equal((await queue.stats()).ready, 1);
  },
  "a repeated write writes once, and does not undo a later one": async (client) => {
    const dict = client.dict<number>(fresh("d"));
    const command = { id: newId(), dict: dict.name, changes: [{ key: '"n"', do: "increment", by: 5 }] };
    await client.post("/v1/write", command);
    await dict.increment("n");
    const [again] = await client.post<wire.Written[]>("/v1/write", command);
    assert.equal(again!.entry!.value, 5);
    assert.equal(await dict.get("n"), 6);
  },
  "a repeated acquire does not take a lease that was given back": async (client) => {
    const key = JSON.stringify(["lock", fresh("l")]);
    const command = { id: newId(), dict: null, key, holder: "h", lease_id: "x", lease_s: 60 };
    await client.post("/v1/acquire", command);
    await client.execute("Release", { names: [[null, key, "x"]] });
    await client.post("/v1/acquire", command);
    assert.deepEqual((await client.execute("Look", { dict: null, keys: [key] })).leases, [null]);
  },
  "a repeated step is applied once and answered whole": async (client) => {
    const [queue, dict] = [fresh(), fresh("d")];
    const commands = [
      { type: "Put", queue, items: [{ id: newId(), value: 1 }] },
      { type: "Write", dict, changes: [{ key: '"n"', do: "increment", by: 1 }] },
    ];
    await same(client, "together", { commands });
    assert.deepEqual([(await client.queue(queue).stats()).ready, await client.dict(dict).get("n")], [1, 1]);
  },
  "a repetition writes no event": async (client) => {
    const queue = fresh();
    await same(client, "put", { queue, items: [{ id: "a", value: 1 }] });
    assert.equal((await client.execute("Changes", { topic: `queue:${queue}` })).events.length, 1);
  },
};
