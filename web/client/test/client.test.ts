import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ClaimLost, Compacted, Holdfast, HoldfastError, LeaseHeld, OutcomeUnknown, decodeKey, encodeKey, newId } from "../src/index.ts";
import { Server } from "./server.ts";

let server: Server;
let client: Holdfast;

before(async () => {
  server = await Server.start();
  client = new Holdfast(server.url);
});
after(() => server.stop());

test("a message is put once under its id, claimed in order, and acknowledged", async () => {
  const queue = client.queue<{ n: number }>("orders");
  assert.deepEqual(await queue.put({ n: 1 }, { id: "a" }), { id: "a", created: true });
  assert.deepEqual(await queue.put({ n: 1 }, { id: "a" }), { id: "a", created: false });
  await queue.put({ n: 2 }, { priority: 5, key: ["user", 7], metadata: { from: "test" }, labels: ["x"] });
  const first = await queue.claim();
  assert.deepEqual([first?.value, first?.key, first?.attempts], [{ n: 2 }, ["user", 7], 1]);
  await first!.ack();
  const second = await queue.claim();
  assert.equal(second?.id, "a");
  assert.ok(second!.token > first!.token);
  await second!.ack();
  assert.equal(await queue.claim(), undefined);
  assert.equal((await queue.stats()).ready, 0);
});

test("a claim whose lease has ended cannot be acknowledged", async () => {
  const queue = client.queue<number>("late");
  await queue.put(1);
  const claim = await queue.claim({ leaseS: 60 });
  await claim!.renew(0);
  await assert.rejects(claim!.ack(), ClaimLost);
  const again = await queue.claim();
  assert.ok(again!.token > claim!.token);
});

test("a failure is tried again and becomes a dead letter that can be redriven", async () => {
  const queue = client.queue<number>("failing");
  await queue.put(1, { maxAttempts: 1 });
  await (await queue.claim())!.fail("no route");
  const { messages } = await queue.browse("dead");
  assert.equal(messages[0]?.last_error, "no route");
  assert.deepEqual((await queue.redrive()).ids, [messages[0]!.id]);
  assert.equal((await queue.stats()).ready, 1);
});

test("a waiting claim is woken by a put", async () => {
  const queue = client.queue<string>("waiting");
  const waiting = queue.claim({ waitS: 30 });
  await queue.put("now");
  assert.equal((await waiting)?.value, "now");
});

test("a waiting claim whose answer is lost is answered again, and one that forgets its id claims another message", async () => {
  const queue = client.queue<number>("lost-answers");
  await queue.putMany([1, 2, 3]);
  const losing = (change: (body: object) => object = (body) => body) => {
    let isLost = false;
    const lossy: typeof fetch = async (input, init) => {
      const response = await fetch(input, { ...init, body: JSON.stringify(change(JSON.parse(init!.body as string))) });
      if (isLost) return response;
      isLost = true;
      throw new TypeError("the answer was lost");
    };
    return new Holdfast(server.url, { fetch: lossy }).queue<number>(queue.name);
  };
  assert.equal((await losing().claim({ waitS: 30 }))?.value, 1);
  assert.equal((await queue.stats()).leased, 1);
  const forgetful = losing((body) => ({ ...body, id: newId() }));
  assert.equal((await forgetful.claim({ waitS: 30 }))?.value, 3);
  assert.equal((await queue.stats()).leased, 3);
});

test("what is claimed when the signal is aborted is given back", async () => {
  const queue = client.queue<number>("aborted");
  await queue.put(1);
  const end = new AbortController();
  const late: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    end.abort();
    return response;
  };
  await assert.rejects(new Holdfast(server.url, { fetch: late }).queue("aborted").claim({ waitS: 30, signal: end.signal }), { name: "AbortError" });
  assert.equal((await queue.stats()).ready, 1);
});

test("a claim that is aborted while it is tried again is given back, and one that is not asked for again is held", async () => {
  const queue = client.queue<number>("aborted-between");
  await queue.put(1);
  const aborted = async (goesOn: boolean) => {
    const end = new AbortController();
    let tries = 0;
    const lossy: typeof fetch = async (input, init) => {
      if (tries++ && !goesOn) throw new TypeError("the server is away");
      const response = await fetch(input, init);
      if (tries > 1) return response;
      setImmediate(() => end.abort());
      throw new TypeError("the answer was lost");
    };
    const patience = goesOn ? {} : { forS: 0.2 };
    const lost = new Holdfast(server.url, { fetch: lossy, patience }).queue("aborted-between");
    await assert.rejects(lost.claim({ signal: end.signal }), goesOn ? { name: "AbortError" } : OutcomeUnknown);
  };
  await aborted(true);
  assert.equal((await queue.stats()).ready, 1);
  await aborted(false);
  assert.equal((await queue.stats()).leased, 1, "control: nobody asks what it was granted");
});

/** What a server that stands still answers. */
function silence(init?: RequestInit): Promise<never> {
  return new Promise((_, reject) => init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason)));
}

test("a try that gets no answer is made again after its time, and a lock that is waited for is not taken after an abort", async () => {
  let tries = 0;
  const silent: typeof fetch = (input, init) => (tries++ ? fetch(input, init) : silence(init));
  const patient = new Holdfast(server.url, { fetch: silent, patience: { tryS: 0.05 } });
  await patient.queue("silent").put(1);
  assert.ok(tries >= 2, "on a busy machine a later try may take too long, too");
  assert.equal((await client.queue("silent").stats()).ready, 1);
  const end = new AbortController();
  const late: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    end.abort();
    return response;
  };
  const lock = new Holdfast(server.url, { fetch: late }).lock("late");
  await assert.rejects(lock.acquire({ signal: end.signal }), { name: "AbortError" });
  await (await client.lock("late").tryAcquire())!.release();
});

test("a claim is lost when its lease may have ended, though the server says nothing", async () => {
  const queue = client.queue<number>("silent-renewals");
  await queue.put(1);
  const deaf: typeof fetch = (input, init) => (String(input).endsWith("/extend") ? silence(init) : fetch(input, init));
  const patient = new Holdfast(server.url, { fetch: deaf, patience: { forS: 0.6, tryS: 0.6 } });
  const claim = (await patient.queue("silent-renewals").claim({ leaseS: 0.3 }))!;
  await new Promise((resolve) => claim.signal.addEventListener("abort", resolve));
  assert.ok(claim.signal.reason instanceof ClaimLost);
});

test("a watch that hears nothing is made again, and goes on behind its last event", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked: string[] = [];
  const stopped: typeof fetch = async (input, init) => {
    asked.push(String(input).split("after=")[1]!);
    const event = new TextEncoder().encode(`data: {"event": "put", "index": ${asked.length}}\n\n`);
    const start = (out: ReadableStreamDefaultController) => {
      out.enqueue(event);
      init!.signal!.addEventListener("abort", () => out.error(init!.signal!.reason));
    };
    return new Response(new ReadableStream({ start }));
  };
  const events = new Holdfast(server.url, { fetch: stopped }).watch("queue:any");
  assert.equal((await events.next()).value?.index, 1);
  const next = events.next();
  while (asked.length < 2) {
    await new Promise((resolve) => setImmediate(resolve));
    t.mock.timers.tick(60_000);
  }
  assert.equal((await next).value?.index, 2);
  assert.deepEqual(asked, ["-1", "1"]);
});

test("a waiting claim takes what becomes due meanwhile, and ends with its signal or its time", async () => {
  const queue = client.queue<number>("due");
  await queue.put(1, { delayS: 0.1 });
  assert.equal((await queue.claim({ waitS: 30 }))?.value, 1);
  assert.equal(await queue.claim({ waitS: 0.1 }), undefined);
  const end = new AbortController();
  const waiting = queue.claim({ waitS: 30, signal: end.signal });
  end.abort();
  await assert.rejects(waiting, { name: "AbortError" });
});

test("a loop works on messages, renews their claims and ends with its signal", async () => {
  const queue = client.queue<number>("looped");
  await queue.putMany([1, 2, 3, 4]);
  const end = new AbortController();
  const seen: number[] = [];
  const errors: unknown[] = [];
  const work = async (value: number) => {
    seen.push(value);
    if (seen.length === 6) end.abort();
    if (value === 3) throw new Error("three");
  };
  await queue.work(work, { concurrency: 2, maxAttempts: 3, signal: end.signal, onError: (error) => errors.push(error) });
  assert.deepEqual([...new Set(seen)].sort(), [1, 2, 3, 4]);
  assert.equal(seen.filter((value) => value === 3).length, 3);
  assert.equal(errors.length, 3);
  assert.equal((await queue.stats()).dead, 1);
});

test("a dict has compare-and-set, increments and fences", async () => {
  const dict = client.dict<unknown>("settings");
  assert.equal(await dict.compareAndSet("mode", 0, "dark"), true);
  assert.equal(await dict.compareAndSet("mode", 0, "light"), false);
  const entry = await dict.entry("mode");
  assert.equal(await dict.compareAndSet("mode", entry!.revision, "light"), true);
  assert.equal(await dict.get("mode"), "light");
  assert.equal(await dict.increment("count", 2), 2);
  assert.equal(await dict.increment("count", 2), 4);
  assert.deepEqual((await dict.entries({ prefix: "mo" })).map((one) => one.key), ["mode"]);
  assert.equal(await dict.delete("mode"), true);
  assert.equal(await dict.delete("mode"), false);
  assert.equal(await dict.get("mode"), undefined);
});

test("a step of several commands is all or nothing", async () => {
  const steps = (n: number) =>
    [
      { type: "Put", queue: "steps", items: [{ id: `s-${n}`, value: n }] },
      { type: "Write", dict: "steps", changes: [{ key: encodeKey("done"), value: n, expect: "absent" }] },
    ] as const;
  await client.together(steps(1) as never);
  await assert.rejects(client.together(steps(2) as never), (error: HoldfastError) => error.code === "refused");
  assert.equal((await client.queue("steps").stats()).ready, 1);
});

test("a step that only reads is sent without an id, for which the server would write", async () => {
  const sent: boolean[] = [];
  const seeing: typeof fetch = (input, init) => {
    sent.push("id" in JSON.parse(init!.body as string));
    return fetch(input, init);
  };
  const seen = new Holdfast(server.url, { fetch: seeing });
  await seen.together([{ type: "Counts" }, { type: "Names", kind: "queue" }]);
  await seen.together([{ type: "Counts" }, { type: "Put", queue: "mixed", items: [{ id: "a", value: 1 }] }]);
  assert.deepEqual(sent, [false, true]);
});

test("a lock excludes, renews itself, and its tokens grow", async () => {
  const lock = client.lock("report", { leaseS: 5, holder: "first" });
  const held = await lock.acquire();
  assert.equal(await client.lock("report").tryAcquire(), undefined);
  await assert.rejects(client.lock("report").acquire({ timeoutS: 0.1 }), LeaseHeld);
  await held.release();
  const token = await client.lock("report").run(async (next) => next.token);
  assert.ok(token > held.token);
});

test("a watch sees every event, and says when the events asked for are gone", async () => {
  const queue = client.queue<number>("watched");
  const seen: string[] = [];
  const ids: string[] = [];
  const putting = (async () => {
    for (let n = 0; n < 20; n++) ids.push((await queue.put(n)).id);
  })();
  for await (const event of queue.watch()) {
    seen.push(...(event.data as { ids: string[] }).ids);
    if (seen.length === 20) break;
  }
  await putting;
  assert.deepEqual(seen, ids);
  await assert.rejects(queue.watch({ after: Number.MAX_SAFE_INTEGER }).next(), Compacted);
});

test("what the server refuses is thrown at once, with its code", async () => {
  await assert.rejects(client.queue("orders").claim({ leaseS: -1 }), (error: HoldfastError) => error.code === "bad_value");
});

test("keys are written as every client writes them", () => {
  for (const key of ["a b é", 1, 1.5, true, null, ["user", ["x", 7]]] as const) assert.deepEqual(decodeKey(encodeKey(key)), key);
  assert.equal(encodeKey(["lock", "a"]), '["lock","a"]');
});

test("a server that is gone is an unknown outcome after the patience, and nothing is put twice", async () => {
  const gone = new Holdfast("http://127.0.0.1:9", { patience: { forS: 0.3 } });
  await assert.rejects(gone.queue("x").put(1), OutcomeUnknown);
});

test("commands go on while the server is killed and started again, each once, and watches miss nothing", async () => {
  const queue = client.queue<number>("killed");
  const dict = client.dict<number>("killed");
  const seen = new Set<string>();
  const end = new AbortController();
  const watching = (async () => {
    for await (const event of queue.watch({ signal: end.signal })) {
      if (event.event === "put") for (const id of (event.data as { ids: string[] }).ids) seen.add(id);
    }
  })();
  const ids: string[] = [];
  const putting = Array.from({ length: 4 }, async (_, lane) => {
    for (let n = 0; n < 25; n++) {
      ids.push((await queue.put(lane * 100 + n)).id);
      await dict.increment("puts");
    }
  });
  for (let kills = 0; kills < 3; kills++) {
    const before = ids.length;
    while (ids.length < Math.min(100, before + 10)) await new Promise((resolve) => setImmediate(resolve));
    await server.kill();
    await server.up();
  }
  await Promise.all(putting);
  assert.equal((await queue.stats()).ready, 100);
  assert.equal(await dict.get("puts"), 100);
  while (seen.size < 100) await new Promise((resolve) => setTimeout(resolve, 10));
  end.abort();
  await watching;
  assert.deepEqual([...seen].sort(), [...ids].sort());
});

test("hints name the topics that may have changed, and a map of marks goes on where it was", async () => {
  const end = new AbortController();
  const marks = new Map<string, string | null>([["watch:queue:hinted", null], ["watch:queue:other", null]]);
  const heard = client.hints(marks, end.signal);
  assert.deepEqual((await heard.next()).value, []);
  const next = heard.next();
  await client.queue("hinted").put(1);
  assert.deepEqual((await next).value, ["watch:queue:hinted"]);
  end.abort();
  const again = client.hints(marks, new AbortController().signal);
  await client.queue("other").put(1);
  assert.deepEqual((await again.next()).value, ["watch:queue:other"]);
  await again.return(undefined);
});

test("a job is looked at, retried and cancelled", async () => {
  const queue = client.queue<number>("jobs");
  const { id } = await queue.put(1, { maxAttempts: 1 });
  const job = client.job("jobs", id);
  assert.equal((await job.view()).status.state, "waiting");
  await (await queue.claim())!.fail("ValueError: no");
  const dead = await job.view();
  assert.equal(dead.status.state, "dead");
  assert.match(dead.explanation.sentence, /no/);
  assert.equal(await job.retry(), true);
  assert.equal(await job.cancel(), "cancelled");
  assert.equal(await job.cancel(), "absent");
  assert.deepEqual(await client.schedules("none"), []);
  await assert.rejects(client.steerSchedule("none", "run"), (error: HoldfastError) => error.code === "schedule_missing");
});
