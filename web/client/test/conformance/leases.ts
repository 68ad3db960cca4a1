/** Leases on names and keys, capacities, lists, breaks. */

import assert from "node:assert/strict";

import { LeaseHeld, encodeKey, type wire } from "../../src/index.ts";
import { type Cases, fresh, refused } from "./cases.ts";

const asks = (name: string, id: string, more: object = {}) => ({ dict: null, key: encodeKey(["lock", name]), holder: id, lease_id: id, lease_s: 60, ...more });
const nameOf = (name: string, id: string): wire.LeaseName => [null, encodeKey(["lock", name]), id];

export const leases: Cases = {
  "a lease is granted to one, who is named to all others": async (client) => {
    const name = fresh("l");
    const first = await client.execute("Acquire", asks(name, "ann"));
    const second = await client.execute("Acquire", asks(name, "bob"));
    assert.deepEqual([second.lease.holder, second.lease.token], ["ann", first.lease.token]);
    assert.notEqual(second.lease.lease_id, "bob");
    assert.ok(second.ends_in_s! > 0);
  },
  "a lease that was given back is granted again with a larger token, and the old one renews nothing": async (client) => {
    const name = fresh("l");
    const first = await client.execute("Acquire", asks(name, "ann"));
    assert.deepEqual(await client.execute("Release", { names: [nameOf(name, "ann")] }), { held: [true] });
    const second = await client.execute("Acquire", asks(name, "bob"));
    assert.ok(second.lease.token > first.lease.token);
    assert.deepEqual(await client.execute("Renew", { names: [nameOf(name, "ann")], lease_s: 60 }), { leases: [null] });
    assert.deepEqual(await client.execute("Release", { names: [nameOf(name, "ann")] }), { held: [false] });
  },
  "a lock excludes over clients, is waited for, and is woken or asked again when it is free": async (client) => {
    const name = fresh("l");
    const held = await client.lock(name, { holder: "ann" }).acquire();
    await assert.rejects(client.lock(name).acquire({ timeoutS: 0.05 }), LeaseHeld);
    const waiting = client.lock(name, { holder: "bob" }).acquire();
    await held.release();
    const next = await waiting;
    assert.ok(next.token > held.token);
    await next.release();
  },
  "a name with capacity is granted so often, and its line is served in order": async (client) => {
    const name = fresh("l");
    const share = (id: string, more = {}) => client.execute("Acquire", asks(name, id, { capacity: 2, in_line_s: 60, ...more }));
    const granted = async (id: string) => (await share(id)).lease.lease_id === id;
    assert.deepEqual([await granted("a"), await granted("b"), await granted("c"), await granted("d")], [true, true, false, false]);
    await client.execute("Release", { names: [nameOf(name, "a")] });
    assert.deepEqual([await granted("d"), await granted("c")], [false, true]);
    assert.equal((await client.execute("Look", { dict: null, keys: [encodeKey(["lock", name])] })).leases[0]!.holders!.length, 2);
    assert.equal((await client.execute("Resize", { key: encodeKey(["lock", name]), capacity: 3 })).capacity, 3);
    assert.equal(await granted("d"), true);
  },
  "held leases are listed by prefix, and a broken one is lost, with a larger token for the next": async (client) => {
    const name = fresh("listed");
    const { lease } = await client.execute("Acquire", asks(name, "ann"));
    const list = async () => (await client.execute("Leases", { prefix: encodeKey(["lock", name]).slice(0, -2) })).held.flatMap((one) => (one.leases ?? []).map((each) => each.holder));
    assert.deepEqual(await list(), ["ann"]);
    const broken = await client.execute("Break", { dict: null, key: encodeKey(["lock", name]), reason: "stuck", token: lease.token });
    assert.equal(broken.leases![0]!.holder, "ann");
    assert.deepEqual(await list(), []);
    assert.deepEqual(await client.execute("Renew", { names: [nameOf(name, "ann")], lease_s: 60 }), { leases: [null] });
    assert.ok((await client.execute("Acquire", asks(name, "bob"))).lease.token > lease.token);
  },
  "a write under a lease of its key is refused to who does not hold it, and a token is a fence": async (client) => {
    const dict = fresh("d");
    const key = encodeKey("k");
    const { lease } = await client.execute("Acquire", { dict, key, holder: "ann", lease_id: "ann", lease_s: 60, default: 0 });
    const write = async (change: object) => (await client.execute("Write", { dict, changes: [{ key, value: 1, ...change }] }))[0]!.because ?? "";
    assert.deepEqual([await write({ lease: "bob" }), await write({ lease: "ann", fence: lease.token })], ["lease", ""]);
    assert.equal(await write({ lease: "ann", fence: lease.token - 1 }), "fence");
  },
  "a step takes all of its leases or none": async (client) => {
    const [a, b] = [fresh("l"), fresh("l")];
    await client.execute("Acquire", asks(b, "ann"));
    const step = [a, b].map((name) => ({ type: "Acquire" as const, ...asks(name, "bob"), all_or_none: true }));
    await assert.rejects(client.together(step), refused("lease_held"));
    assert.equal((await client.execute("Acquire", asks(a, "cat"))).lease.lease_id, "cat");
  },
};
