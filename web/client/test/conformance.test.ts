/** A port of the conformance suite to this client, while the server is killed and started again; the names of the tests are those of the suite. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Holdfast, newId } from "../src/index.ts";
import { dicts } from "./conformance/dicts.ts";
import { events } from "./conformance/events.ts";
import { leases } from "./conformance/leases.ts";
import { looking } from "./conformance/looking.ts";
import { queues } from "./conformance/queues.ts";
import { retries } from "./conformance/retries.ts";
import { together } from "./conformance/together.ts";
import { waiting } from "./conformance/waiting.ts";
import { Server } from "./server.ts";
import { Storm } from "./storm.ts";

/** One of each way to die. */
const KILLS = 4;

let server: Server;
let storm: Storm;
let client: Holdfast;

before(async () => {
  server = await Server.start();
  storm = new Storm(server, 40, KILLS);
  client = new Holdfast(server.url, { fetch: storm.fetch });
});
after(() => server.stop());

for (const part of [queues, looking, dicts, leases, together, retries, events, waiting]) {
  for (const [name, run] of Object.entries(part)) test(name, () => run(client));
}

test("the server was killed in the middle of it", async () => {
  await storm.calm();
  assert.equal(storm.kills, KILLS);
});

test("control: a client that gives each try an id of its own does things twice", async () => {
  const losses = new Storm(server, 1, 1);
  const forgetful: typeof fetch = (input, init) => losses.fetch(input, { ...init, body: JSON.stringify({ ...JSON.parse(init!.body as string), id: newId() }) });
  assert.equal(await new Holdfast(server.url, { fetch: forgetful }).dict("control").increment("n"), 2);
  await losses.calm();
  const careful = new Storm(server, 1, 1);
  assert.equal(await new Holdfast(server.url, { fetch: careful.fetch }).dict("control").increment("m"), 1);
  await careful.calm();
});
