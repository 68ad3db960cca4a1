/** Putting, the line, claims, keys, budgets. */

import assert from "node:assert/strict";

import { ClaimLost, encodeKey } from "../../src/index.ts";
import { type Cases, claimOne, empty, fresh, refused } from "./cases.ts";

export const queues: Cases = {
  "messages come out in the order they went in, higher priorities first": async (client) => {
    const queue = client.queue<string>(fresh());
    await queue.putMany(["a", "b"]);
    await queue.put("first", { priority: 5 });
    await queue.put("last", { priority: -5 });
    assert.deepEqual((await queue.claimMany(10)).map((claim) => claim.value), ["first", "a", "b", "last"]);
  },
  "a message comes back with the value and metadata it was put with": async (client) => {
    const queue = client.queue<unknown>(fresh());
    for (const value of [null, true, 1.5, "é \u0000 \u{1f600}", [1, { deep: [] }], { "": 0 }]) {
      await queue.put(value, { metadata: { note: "ü" } });
      const claim = await claimOne(queue);
      assert.deepEqual([claim.value, claim.message.metadata], [value, { note: "ü" }]);
      await claim.ack();
    }
  },
  "a delayed message is not handed out early, and an empty claim says when time alone will change that": async (client) => {
    const name = fresh();
    await client.queue(name).put(1, { delayS: 3600 });
    const claimed = await client.execute("Claim", { queue: name });
    assert.deepEqual(claimed.messages, []);
    assert.ok(claimed.due_in_s! > 3000);
    assert.equal((await client.queue(name).stats()).delayed, 1);
  },
  "another value under a known id is refused if the put says so, with all of its batch": async (client) => {
    const queue = fresh();
    await client.queue(queue).put(1, { id: "a" });
    const items = [{ id: "b", value: 1 }, { id: "a", value: 2, if_id: "reject" as const }];
    await assert.rejects(client.execute("Put", { queue, items }), refused("id_taken"));
    assert.equal((await client.queue(queue).stats()).ready, 1);
  },
  "a claim says who holds the message and until when, and it is handed to nobody else": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.put(1);
    const claim = await queue.claim({ holder: "ann", leaseS: 60 });
    assert.deepEqual([claim!.message.holder, claim!.message.until! - claim!.message.since!], ["ann", 60_000_000]);
    assert.equal(await queue.claim(), undefined);
  },
  "a claim whose lease has ended is lost, and the message is handed out again with a larger token": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.put(1);
    const first = await claimOne(queue);
    assert.equal(await first.renew(0), true);
    await assert.rejects(first.ack(), ClaimLost);
    const second = await claimOne(queue);
    assert.ok(second.token > first.token);
    await assert.rejects(first.ack(), ClaimLost);
    assert.equal(await first.renew(60), false);
    await second.ack();
    await assert.rejects(second.ack(), ClaimLost);
  },
  "settling says for each receipt whether it was held, over several queues in one step": async (client) => {
    const [one, two] = [client.queue<number>(fresh()), client.queue<number>(fresh())];
    await one.put(1);
    await two.put(2);
    const [a, b] = [await claimOne(one), await claimOne(two)];
    const stale: typeof a.receipt = [one.name, a.id, a.token - 1];
    assert.deepEqual(await client.execute("Settle", { receipts: [a.receipt, stale, b.receipt] }), { held: [true, false, true] });
  },
  "all or none: one stale receipt refuses the settling of all": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.putMany([1, 2]);
    const [a, b] = await queue.claimMany(2);
    await b!.ack();
    await assert.rejects(client.execute("Settle", { receipts: [a!.receipt, b!.receipt], all_or_none: true }), refused("claim_lost"));
    await a!.ack();
  },
  "take removes what it hands out": async (client) => {
    const queue = fresh();
    await client.queue(queue).put("x");
    const { messages } = await client.execute("Claim", { queue, take: true });
    assert.equal(messages[0]!.value, "x");
    await empty(client.queue(queue));
  },
  "a put on a waiting key follows if_ready": async (client) => {
    const queue = client.queue<string>(fresh());
    await queue.put("old", { key: "k" });
    assert.equal((await queue.put("kept out", { key: "k", ifReady: "keep" })).created, false);
    await assert.rejects(queue.put("refused", { key: "k", ifReady: "reject" }), refused("key_in_flight"));
    await queue.put("new", { key: "k", ifReady: "update" });
    assert.equal((await claimOne(queue)).value, "new");
  },
  "a put on a leased key is buffered, and becomes claimable however the first ends": async (client) => {
    const queue = client.queue<string>(fresh());
    await queue.put("first", { key: "k" });
    const claim = await claimOne(queue);
    await queue.put("copy", { key: "k" });
    assert.equal((await queue.stats()).buffered, 1);
    await claim.ack();
    assert.equal((await claimOne(queue)).value, "copy");
  },
  "a message can be claimed by its key": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.put(1, { key: "a" });
    await queue.put(2, { key: ["b", 2] });
    const { messages } = await client.execute("Claim", { queue: queue.name, key: encodeKey(["b", 2]) });
    assert.equal(messages[0]!.value, 2);
  },
  "failures count and releases do not; spent attempts make a dead letter with its error": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.put(1, { maxAttempts: 2 });
    await (await claimOne(queue)).release();
    await (await claimOne(queue)).fail("Flaky: once");
    await (await claimOne(queue)).fail("Flaky: twice");
    const { messages } = await queue.browse("dead");
    assert.deepEqual([messages[0]!.failures, messages[0]!.last_error], [2, "Flaky: twice"]);
    assert.deepEqual(messages[0]!.history!.map((ending) => ending[4]), ["released", "failed", "buried"]);
  },
  "a dead letter goes to its dead-letter queue, and is redriven from there": async (client) => {
    const [queue, letters] = [client.queue<number>(fresh()), client.queue<number>(fresh("letters"))];
    await queue.put(1, { id: "m", maxAttempts: 1, deadLetterQueue: letters.name });
    await (await claimOne(queue)).fail("no");
    await empty(queue);
    assert.equal((await letters.stats()).ready, 1);
    const moved = await client.execute("Move", { queue: letters.name, to: "ready", state: "ready", to_queue: queue.name });
    assert.equal(moved.ids.length, 1);
    assert.equal((await claimOne(queue)).value, 1);
  },
  "redrive leaves a letter whose key another message has": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.put(1, { id: "old", key: "k", maxAttempts: 1 });
    await (await claimOne(queue)).fail("no");
    await queue.put(2, { key: "k" });
    assert.deepEqual(await queue.redrive(), { ids: [], kept: { old: "key" } });
  },
  "a full queue refuses a put, with all of its batch": async (client) => {
    const queue = client.queue<number>(fresh());
    await client.execute("Configure", { kind: "queue", name: queue.name, maxsize: 2 });
    await queue.put(1);
    await assert.rejects(queue.putMany([2, 3]), refused("queue_full"));
    assert.equal((await queue.stats()).ready, 1);
  },
  "a group works on no more than its limit": async (client) => {
    const queue = client.queue<number>(fresh());
    await client.execute("Configure", { kind: "queue", name: queue.name, groups: "fair", group_limit: 1 });
    for (const group of ["a", "a", "b"]) await queue.put(1, { group });
    assert.deepEqual((await queue.claimMany(10)).map((claim) => claim.message.group).sort(), ["a", "b"]);
    const { lanes } = await client.execute("Groups", { queue: queue.name });
    assert.deepEqual(lanes.map((lane) => [lane.name, lane.live]), [["a", 1], ["b", 1]]);
  },
  "a batch as large as a thousand goes in and out in order": async (client) => {
    const queue = client.queue<number>(fresh());
    const values = Array.from({ length: 1000 }, (_, n) => n);
    await queue.putMany(values);
    assert.deepEqual((await queue.claimMany(1000)).map((claim) => claim.value), values);
  },
};
