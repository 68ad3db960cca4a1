/** Entries: conditions, revisions, increments, fences, pages. */

import assert from "node:assert/strict";

import { type HeldLock, encodeKey } from "../../src/index.ts";
import { type Cases, fresh, refused } from "./cases.ts";

const token = async (held: HeldLock) => held.token;

export const dicts: Cases = {
  "compare-and-set stores under the revision that was read, and under no other": async (client) => {
    const dict = client.dict<number>(fresh("d"));
    assert.equal(await dict.compareAndSet("k", 0, 1), true);
    assert.equal(await dict.compareAndSet("k", 0, 2), false);
    const { revision } = (await dict.entry("k"))!;
    assert.equal(await dict.compareAndSet("k", revision, 3), true);
    assert.equal(await dict.compareAndSet("k", revision, 4), false);
    assert.equal(await dict.get("k"), 3);
    assert.ok((await dict.entry("k"))!.revision > revision);
  },
  "a write expects a value, presence or absence, and tells the entry that stood against it": async (client) => {
    const dict = fresh("d");
    const write = async (change: object) => (await client.execute("Write", { dict, changes: [{ key: '"k"', ...change }] }))[0]!;
    assert.equal((await write({ value: 1, expect: "present" })).because, "compare");
    assert.equal((await write({ value: 1, expect: "absent" })).because ?? null, null);
    assert.deepEqual([(await write({ value: 2, expect: "value", expected: 9 })).because, (await write({ value: 2, expect: "value", expected: 9 })).entry!.value], ["compare", 1]);
    assert.equal((await write({ value: 2, expect: "value", expected: 1 })).entry!.value, 2);
  },
  "all or none: one change that is refused refuses all": async (client) => {
    const dict = fresh("d");
    const changes = [{ key: '"a"', value: 1 }, { key: '"b"', value: 1, expect: "present" as const }];
    await assert.rejects(client.execute("Write", { dict, changes, all_or_none: true }), refused("refused"));
    assert.equal(await client.dict(dict).get("a"), undefined);
  },
  "increments add up, and a text is not incremented": async (client) => {
    const dict = client.dict<unknown>(fresh("d"));
    assert.deepEqual([await dict.increment("n"), await dict.increment("n", 41), await dict.increment("n", -2)], [1, 42, 40]);
    await dict.put("t", "text");
    await assert.rejects(dict.increment("t"), /is not a number/);
  },
  "a larger fence keeps a smaller one out, even after the entry was deleted": async (client) => {
    const dict = client.dict<string>(fresh("d"));
    const lock = client.lock(fresh("l"));
    const [old, next, last] = [await lock.run(token), await lock.run(token), await lock.run(token)];
    assert.equal(await dict.put("k", "new", { fence: next }), true);
    assert.equal(await dict.put("k", "stale", { fence: old }), false);
    await dict.delete("k");
    assert.equal(await dict.put("k", "stale", { fence: old }), false);
    assert.equal(await dict.put("k", "newer", { fence: last }), true);
  },
  "entries are read by prefix and page by page, and counted": async (client) => {
    const dict = client.dict<number>(fresh("d"));
    for (const [n, key] of ["a1", "a2", "a3", "b1"].entries()) await dict.put(key, n);
    assert.deepEqual((await dict.entries({ prefix: "a", limit: 2 })).map((entry) => entry.key), ["a1", "a2"]);
    assert.deepEqual((await dict.entries({ prefix: "a", after: "a2" })).map((entry) => entry.key), ["a3"]);
    assert.equal(await client.execute("Length", { dict: dict.name }), 4);
    assert.equal(await client.execute("Clear", { kind: "dict", name: dict.name, prefix: '"a' }), 3);
    assert.deepEqual((await dict.entries()).map((entry) => entry.key), ["b1"]);
  },
  "keys are told apart by their text": async (client) => {
    const dict = client.dict<string>(fresh("d"));
    for (const key of [1, "1", true, null, ["1"], [1]] as const) await dict.put(key, encodeKey(key));
    for (const key of [1, "1", true, null, ["1"], [1]] as const) assert.equal(await dict.get(key), encodeKey(key));
  },
  "an entry whose time has passed is gone": async (client) => {
    const dict = client.dict<number>(fresh("d"));
    await dict.put("k", 1, { ttlS: 0.001 });
    await dict.put("kept", 1, { ttlS: 600 });
    while ((await dict.get("k")) !== undefined);
    assert.deepEqual((await dict.entries()).map((entry) => entry.key), ["kept"]);
  },
};
