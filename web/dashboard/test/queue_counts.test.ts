/** Queues are read page by page, and none is left out for its name. */

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Holdfast } from "../../client/src/index.ts";
import { MOST, readAllQueues, topicsOf } from "../src/queue_counts.ts";

/** A client of a server with so many queues, the last of which has a dead letter; and how often it was asked. */
function clientOf(count: number): { client: Holdfast; asked: () => number } {
  const names = Array.from({ length: count }, (_, n) => `q-${String(n).padStart(5, "0")}`);
  let asked = 0;
  const together = ([{ after, limit }]: { after: string | null; limit: number }[]) => {
    asked += 1;
    const behind = names.filter((name) => after === null || name > after);
    const page = behind.slice(0, limit);
    const more = behind.length > limit;
    const queues = page.map((name) => ({ name, stats: { dead: name === names.at(-1) ? 1 : 0 } }));
    return Promise.resolve([{ settings: page.map((name) => ({ name })), more }, { queues, more }]);
  };
  return { client: { together } as unknown as Holdfast, asked: () => asked };
}

test("a queue with dead letters is found however many come before it by name", async () => {
  const { client, asked } = clientOf(1_001);
  const { rows, more } = await readAllQueues(client);
  assert.deepEqual([rows.length, rows.at(-1)?.stats.dead, more, asked()], [1_001, 1, false, 6]);
  const topics = topicsOf(rows);
  assert.deepEqual([topics.length, topics[0]], [200, "watch:queue:q-01000"]);
});

test("few queues take one request, and all of them are followed", async () => {
  const { client, asked } = clientOf(200);
  const { rows } = await readAllQueues(client);
  assert.deepEqual([topicsOf(rows).length, asked()], [200, 1]);
});

test("more than so many are not read", async () => {
  const { rows, more } = await readAllQueues(clientOf(MOST + 1).client);
  assert.deepEqual([rows.length, more], [MOST, true]);
});
