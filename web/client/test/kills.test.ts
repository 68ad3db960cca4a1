/** A worker process is killed in the middle of its work: no message is lost, and none is worked on without a claim. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Holdfast, type Queue } from "../src/index.ts";
import { Server } from "./server.ts";

const WORKER = fileURLToPath(new URL("worker.ts", import.meta.url));
const MESSAGES = 30;
/** How many handlers each worker begins before it is killed in one. */
const KILLS = [1, 4, 8];

interface Seen {
  begun: string[];
  ended: string[];
}

let server: Server;

before(async () => {
  server = await Server.start();
});
after(() => server.stop());

/** Run a worker until it has begun so many handlers, or until `isOver`, then kill it. */
async function killed(queue: Queue, seen: Seen, hangs: number, fault: string, isOver?: Promise<void>): Promise<void> {
  const worker = spawn(process.execPath, [WORKER, server.url, queue.name, String(hangs), fault], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(worker, "exit");
  const lines = createInterface(worker.stdout);
  const closed = once(lines, "close");
  const hung = new Promise<void>((resolve) => {
    let begun = 0;
    lines.on("line", (line) => {
      const [what, ...claim] = line.split(" ");
      (what === "begin" ? seen.begun : seen.ended).push(claim.join(" "));
      if (what === "begin" && ++begun >= hangs) resolve();
    });
  });
  await Promise.race([isOver ?? hung, exited]);
  worker.kill("SIGKILL");
  await Promise.all([exited, closed]);
}

/** Nothing waits any more, and nothing is worked on. */
async function drained(client: Holdfast, queue: Queue): Promise<void> {
  for await (const _ of client.hints([`watch:queue:${queue.name}`], new AbortController().signal)) {
    const { ready, leased } = await queue.stats();
    if (!ready && !leased) return;
  }
}

/** End the leases of a worker that is dead, as time would. */
async function endLeases(client: Holdfast, queue: Queue): Promise<void> {
  const { messages } = await queue.browse("leased");
  const receipts = messages.map(({ id, token }) => [queue.name, id, token!] as [string, string, number]);
  await client.execute("Extend", { receipts, lease_s: 0 });
}

/** What the workers said, the messages whose work was never ended, and the claims that the server handed out. */
async function run(name: string, fault = ""): Promise<{ seen: Seen; lost: string[]; claims: Set<string> }> {
  const client = new Holdfast(server.url);
  const queue = client.queue<number>(name);
  const ids = await queue.putMany(Array.from({ length: MESSAGES }, (_, n) => n));
  const seen: Seen = { begun: [], ended: [] };
  for (const hangs of KILLS) {
    await killed(queue, seen, hangs, fault);
    await endLeases(client, queue);
  }
  await killed(queue, seen, Infinity, fault, drained(client, queue));
  const claims = new Set<string>();
  const { events } = await client.execute("Changes", { topic: `queue:${name}`, after: -1, limit: 1_000 });
  for (const { event, index, data } of events) {
    if (event === "claimed") for (const id of (data as { ids: string[] }).ids) claims.add(`${id} ${index}`);
  }
  const ended = new Set(seen.ended.map((claim) => claim.split(" ")[0]));
  return { seen, lost: ids.filter((id) => !ended.has(id)), claims };
}

test("no message is lost when its worker is killed, and none is worked on without a claim", async () => {
  const { seen, lost, claims } = await run("killed");
  assert.deepEqual(lost, []);
  assert.deepEqual(seen.begun.filter((claim) => !claims.has(claim)), []);
  assert.equal(new Set(seen.begun).size, seen.begun.length, "no claim is worked on twice");
  assert.ok(seen.begun.length >= MESSAGES + KILLS.length, "each kill was in the middle of work");
});

test("control: a worker that acknowledges before it works loses what it is killed in", async () => {
  const { lost } = await run("early", "early");
  assert.ok(lost.length >= KILLS.length);
});
