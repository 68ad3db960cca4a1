/** The queues with their settings and sizes, and how the sizes changed while the page is open. */

import type { Holdfast, wire } from "../../client/src/index.ts";

export const PAGE = 50;
const AT_ONCE = 200;
/** Of so many queues the sums are made. */
export const MOST = 5_000;

export interface QueueRow {
  settings: wire.Settings;
  stats: wire.Stats;
}

/** A page of queues with their sizes, in one request. */
export async function readQueues(client: Holdfast, options: { prefix?: string; after?: string | null; limit?: number } = {}): Promise<{ rows: QueueRow[]; more: boolean }> {
  const { prefix = "", after = null, limit = PAGE } = options;
  const page = { prefix, after, limit };
  const answers = await client.together([{ type: "Names", kind: "queue", ...page }, { type: "Counts", ...page }]);
  const [named, counted] = answers as [wire.Named, wire.Counted];
  const stats = new Map(counted.queues.map((queue) => [queue.name, queue.stats]));
  return { rows: named.settings.map((settings) => ({ settings, stats: stats.get(settings.name)! })), more: named.more ?? false };
}

/** The queues of the store, for sums and for what needs attention: page by page, so that none is left out for its name. */
export async function readAllQueues(client: Holdfast): Promise<{ rows: QueueRow[]; more: boolean }> {
  const rows: QueueRow[] = [];
  let more = true;
  while (more && rows.length < MOST) {
    const page = await readQueues(client, { after: rows.at(-1)?.settings.name ?? null, limit: AT_ONCE });
    rows.push(...page.rows);
    more = page.more && page.rows.length > 0;
  }
  return { rows, more };
}

/** What changes when anything happens in these queues; of many, in those with dead letters and in the busiest. */
export function topicsOf(rows: readonly QueueRow[]): string[] {
  const weight = ({ stats }: QueueRow) => (stats.dead ? 1e12 : 0) + (stats.ready ?? 0) + (stats.leased ?? 0);
  const followed = rows.length > AT_ONCE ? rows.toSorted((a, b) => weight(b) - weight(a)).slice(0, AT_ONCE) : rows;
  return followed.map(({ settings }) => `watch:queue:${settings.name}`);
}

export interface Sums {
  ready: number;
  delayed: number;
  leased: number;
  dead: number;
  /** How long the oldest ready message waits. */
  oldest_s: number;
}

export function sumsOf(rows: readonly QueueRow[]): Sums {
  const sum = (field: "ready" | "delayed" | "leased" | "dead") => rows.reduce((total, { stats }) => total + (stats[field] ?? 0), 0);
  return { ready: sum("ready"), delayed: sum("delayed"), leased: sum("leased"), dead: sum("dead"), oldest_s: Math.max(0, ...rows.map(({ stats }) => stats.oldest_ready_s ?? 0)) };
}

const KEPT = 600;
const samples = new Map<string, { times: number[]; sums: Sums[] }>();

/** Counts that were read so many seconds ago: what was old then is older now. */
export function aged(stats: wire.Stats, byS: number): wire.Stats {
  const older = (age: number | null | undefined) => (age == null ? null : age + byS);
  return { ...stats, oldest_ready_s: older(stats.oldest_ready_s), oldest_leased_s: older(stats.oldest_leased_s), oldest_dead_s: older(stats.oldest_dead_s) };
}

/** The same for many queues. */
export function allAged(rows: readonly QueueRow[], byS: number): QueueRow[] {
  return rows.map((row) => ({ ...row, stats: aged(row.stats, byS) }));
}

/** Remember sizes under a name, and give all that were remembered. */
export function sampled(name: string, sums: Sums): { times: number[]; sums: Sums[] } {
  const before = samples.get(name) ?? { times: [], sums: [] };
  const after = { times: [...before.times, Date.now() / 1000].slice(-KEPT), sums: [...before.sums, sums].slice(-KEPT) };
  samples.set(name, after);
  return after;
}
