/** The leases of a message: who had it with which token, for how long, and how each ended. */

import type { ComponentChildren } from "preact";

import type { wire } from "../../client/src/index.ts";
import { Ago, Badge, type Kind, Token, When, age, short } from "./parts.tsx";

interface Stretch {
  since: number;
  until: number;
  look: "waits" | "released" | "failed" | "held" | "done";
  said: string;
}

const HOW: Record<string, [string, Kind | undefined]> = {
  released: ["released", undefined],
  failed: ["failed", "bad"],
  buried: ["failed for good", "bad"],
  expired: ["lease expired", "bad"],
  late: ["was late", "bad"],
};

/** A claim that is still held, or whose message was acknowledged under it. */
function lastClaim(message: wire.Message): { since: number; until: number; isHeld: boolean } | undefined {
  const since = message.since ?? 0;
  if (message.state === "leased") return { since, until: message.until ?? 0, isHeld: true };
  return message.state === "done" && since ? { since, until: message.ended_at ?? since, isHeld: false } : undefined;
}

function seconds(since: number, until: number): string {
  return age(Math.max(0, until - since) / 1_000_000);
}

export function Timeline({ message, now }: { message: wire.Message; now: number }) {
  const endings = message.history ?? [];
  const last = lastClaim(message);
  const left = (message.endings ?? 0) - endings.length;
  return (
    <>
      <Strip message={message} now={now} />
      <ol class="timeline">
        <Moment at={message.created_at}>put</Moment>
        {left > 0 && <li class="quiet">{left} earlier claims are not kept.</li>}
        {endings.map(([holder, token, since, until, how, error]) => (
          <Moment at={since} kind={HOW[how]?.[1]}>
            claimed by <b>{holder}</b> with token <Token token={token} />, {seconds(since, until)} later <Badge kind={HOW[how]?.[1]}>{HOW[how]?.[0] ?? how}</Badge> <span class="quiet">at <When moment={until} /></span>
            {error && <code>{short(error, 300)}</code>}
          </Moment>
        ))}
        {last && (
          <Moment at={last.since} kind="good">
            claimed by <b>{message.holder}</b> with token <Token token={message.token} />,{" "}
            {last.isHeld ? <>held for {seconds(last.since, now)}, until <Ago moment={last.until} /> unless it is renewed</> : <>{seconds(last.since, last.until)} later <Badge kind="good">acknowledged</Badge> <span class="quiet">at <When moment={last.until} /></span></>}
          </Moment>
        )}
        {message.state === "dead" && <Moment at={message.dead_at} kind="bad">dead</Moment>}
        {message.state === "ready" && <Moment at={message.position}>{(message.position ?? 0) > now ? "due" : "ready since then, for whoever claims it next"}</Moment>}
      </ol>
    </>
  );
}

function Moment({ at, kind, children }: { at: number | null | undefined; kind?: Kind | undefined; children: ComponentChildren }) {
  return <li class={kind ?? ""}><span class="moment"><When moment={at} /></span> {children}</li>;
}

const WIDE = 1_000;
const LEAST = 4;

/** The same drawn to scale, from put until now or its end. */
function Strip({ message, now }: { message: wire.Message; now: number }) {
  const begin = message.created_at ?? 0;
  const end = message.dead_at ?? message.ended_at ?? now;
  const stretches = stretchesOf(message, begin, end);
  const scale = WIDE / Math.max(end - begin, 1);
  return (
    <svg class="strip" viewBox={`0 0 ${WIDE} 16`} preserveAspectRatio="none" role="img" aria-label={`To scale: ${stretches.map(({ said }) => said).join("; ")}`}>
      {stretches.map(({ since, until, look, said }) => {
        const x = Math.min((since - begin) * scale, WIDE - LEAST);
        return <rect class={look} x={x} width={Math.max((until - since) * scale, LEAST)} height={16}><title>{said}</title></rect>;
      })}
    </svg>
  );
}

function stretchesOf(message: wire.Message, begin: number, end: number): Stretch[] {
  const claims: Stretch[] = (message.history ?? []).map(([holder, , since, until, how]) => ({ since, until, look: how === "released" ? "released" : "failed", said: `${holder} ${seconds(since, until)}, ${HOW[how]?.[0] ?? how}` }));
  const last = lastClaim(message);
  if (last) {
    const until = last.isHeld ? end : last.until;
    claims.push({ since: last.since, until, look: last.isHeld ? "held" : "done", said: `${message.holder} ${seconds(last.since, until)}, ${last.isHeld ? "holds it" : "acknowledged"}` });
  }
  return [{ since: begin, until: end, look: "waits", said: `${seconds(begin, end)} in all` }, ...claims];
}
