/** Claims that wait for a message. */

import assert from "node:assert/strict";

import { type Cases, fresh } from "./cases.ts";

export const waiting: Cases = {
  "a paused queue hands nothing out, and a resumed one wakes who waits": async (client) => {
    const queue = client.queue<number>(fresh());
    await queue.put(1);
    await queue.pause();
    assert.equal(await queue.claim(), undefined);
    const waiting = queue.claim({ waitS: 50 });
    await queue.resume();
    assert.equal((await waiting)?.value, 1);
  },
  "a waiting claim is woken by a put, and by a release": async (client) => {
    const queue = client.queue<string>(fresh());
    const waiting = queue.claim({ waitS: 50 });
    await queue.put("now");
    const claim = await waiting;
    const next = queue.claim({ waitS: 50 });
    await claim!.release();
    assert.equal((await next)?.value, "now");
  },
};
