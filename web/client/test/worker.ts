/** A worker process for tests that kill it. It says what it begins and ends, and from the `hangs`th handler on it ends nothing. */

import { Holdfast } from "../src/index.ts";

const [url, name, hangs, fault] = process.argv.slice(2);
let begun = 0;

await new Holdfast(url!).queue<number>(name!).work(
  async (_, claim) => {
    if (fault === "early") await claim.ack();
    console.log(`begin ${claim.id} ${claim.token}`);
    if (++begun >= Number(hangs)) await new Promise(() => undefined);
    console.log(`end ${claim.id} ${claim.token}`);
  },
  { concurrency: 3 },
);
