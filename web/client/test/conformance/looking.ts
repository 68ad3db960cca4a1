/** Browsing, counting, filters, moving. */

import assert from "node:assert/strict";

import type { wire } from "../../src/index.ts";
import { type Cases, claimOne, fresh } from "./cases.ts";

const ids = (page: wire.Browsed) => page.messages.map((message) => message.id);

export const looking: Cases = {
  "browsing page by page sees each message once and touches nothing": async (client) => {
    const queue = client.queue<number>(fresh());
    const put = await queue.putMany(Array.from({ length: 25 }, (_, n) => n));
    const seen: string[] = [];
    let page = await queue.browse("ready", { limit: 10 });
    for (seen.push(...ids(page)); page.after; seen.push(...ids(page))) page = await queue.browse("ready", { limit: 10, after: page.after });
    assert.deepEqual(seen, put);
    assert.equal((await claimOne(queue)).attempts, 1);
  },
  "messages are found by id in the order asked, and by key with the copies behind them": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.put(1, { id: "a", key: "k" });
    await claimOne(queue);
    await queue.put(2, { id: "b", key: "k" });
    await queue.put(3, { id: "c" });
    assert.deepEqual(ids(await client.execute("Browse", { queue: queue.name, ids: ["c", "none", "a"] })), ["c", "a"]);
    assert.deepEqual(ids(await client.execute("Browse", { queue: queue.name, keys: ['"k"'] })), ["a", "b"]);
  },
  "a filter narrows by error class, text of the value, label, key and group, and a move takes all that match": async (client) => {
    const queue = client.queue<string>(fresh());
    await queue.put("alpha", { id: "a", labels: ["x"], key: "user-1" });
    await queue.put("beta", { id: "b", group: "g" });
    await queue.put("alphabet", { id: "c" });
    const found = async (which: wire.Filter) => ids(await queue.browse("ready", { which }));
    assert.deepEqual(await found({ value_contains: "alpha" }), ["a", "c"]);
    assert.deepEqual(await found({ label: "x" }), ["a"]);
    assert.deepEqual(await found({ key_prefix: '"user' }), ["a"]);
    assert.deepEqual(await found({ group: "g" }), ["b"]);
    assert.deepEqual((await client.execute("Move", { queue: queue.name, to: "dead", state: "ready", which: { value_contains: "alpha" }, error: "Bad: value" })).ids, ["a", "c"]);
    assert.deepEqual(ids(await queue.browse("dead", { which: { error_class: "Bad" } })), ["a", "c"]);
    assert.deepEqual((await client.execute("Move", { queue: queue.name, to: "gone", state: "dead", limit: 1 })).ids, ["a"]);
    assert.deepEqual(await queue.stats().then(({ ready, dead }) => [ready, dead]), [1, 1]);
  },
  "stats count every state, for one queue and for all at once": async (client) => {
    const prefix = fresh("counted");
    const queue = client.queue<number>(`${prefix}-b`);
    await queue.putMany([1, 2, 3]);
    await queue.put(4, { delayS: 600 });
    await claimOne(queue);
    await (await claimOne(queue)).bury("no");
    await client.queue(`${prefix}-a`).put(1);
    const { queues } = await client.execute("Counts", { prefix });
    assert.deepEqual(queues.map(({ name, stats }) => [name, stats.ready ?? 0, stats.leased ?? 0, stats.delayed ?? 0, stats.dead ?? 0]), [
      [`${prefix}-a`, 1, 0, 0, 0],
      [`${prefix}-b`, 1, 1, 1, 1],
    ]);
    assert.equal((await client.execute("Counts", { prefix, limit: 1 })).more, true);
  },
  "names are listed by prefix, page by page, and a dropped queue is gone": async (client) => {
    const prefix = fresh("named");
    for (const end of ["a", "b", "c"]) await client.queue(`${prefix}${end}`).put(1);
    const names = async (more: object) => (await client.execute("Names", { kind: "queue", prefix, ...more })).settings.map(({ name }) => name.slice(prefix.length));
    assert.deepEqual(await names({ limit: 2 }), ["a", "b"]);
    assert.deepEqual(await names({ limit: 2, after: `${prefix}b` }), ["c"]);
    assert.equal(await client.execute("Clear", { kind: "queue", name: `${prefix}a`, drop: true }), 1);
    assert.deepEqual(await names({}), ["b", "c"]);
  },
};
