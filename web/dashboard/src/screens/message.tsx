/** One message: its lease timeline, why it is not running, its steps, errors and payload. */

import { NotAllowed, type wire } from "../../../client/src/index.ts";
import { Act, Badge, Facts, Failure, Fields, Since, Table, Value, When, short } from "../parts.tsx";
import { to, useClient, useLoaded, useMay } from "../state.ts";

export function MessageScreen({ queue, id }: { queue: string; id: string }) {
  const client = useClient();
  const job = client.job(queue, id);
  const { data, error, reload } = useLoaded(
    async () => {
      const [page, view] = await Promise.all([
        client.execute("Browse", { queue, ids: [id] }),
        job.view().catch((failed: unknown) => {
          if (failed instanceof NotAllowed) return undefined;
          throw failed;
        }),
      ]);
      return { message: page.messages[0], view };
    },
    `${queue} ${id}`,
    [`watch:queue:${queue}`],
  );
  const message = data?.message;
  const view = data?.view;
  return (
    <>
      <h1>Message {id}</h1>
      <p><a href={to("queues", queue)}>Queue {queue}</a></p>
      <Failure error={error} />
      {data && <JobActs queue={queue} id={id} state={message?.state ?? "ready"} isThere={message !== undefined} waitsFor={view?.status.waiting_for ?? null} done={reload} />}
      {view && <p class="said">{view.explanation.sentence}</p>}
      {data && !message && !view && <p class="quiet">It is not in the queue: it is done, was removed, or never was.</p>}
      {message && <MessageFacts message={message} view={view} />}
      {message && <><h2>Lease timeline</h2><Timeline message={message} /></>}
      {view && view.steps.length > 0 && <><h2>Steps</h2><Steps steps={view.steps} /></>}
      {view?.status.progress != null && <><h2>Progress</h2><Value value={view.status.progress} /></>}
      {(view?.status.errors ?? []).map((each) => (
        <details>
          <summary>Attempt {each.attempt}, <Since at={each.at} />, on {each.worker}: {each.type}: {short(each.message, 120)}</summary>
          {each.traceback && <pre tabIndex={0}>{each.traceback}</pre>}
        </details>
      ))}
      {message && <><h2>Value</h2><Value value={message.value} /></>}
      {message?.metadata != null && <><h2>Metadata</h2><Value value={message.metadata} /></>}
    </>
  );
}

function MessageFacts({ message, view }: { message: wire.Message; view: wire.JobView | undefined }) {
  const state = view?.status.state ?? message.state ?? "ready";
  return (
    <Facts
      facts={[
        ["state", <Badge {...(state === "dead" ? { kind: "bad" as const } : {})}>{state}</Badge>],
        ["task", view?.status.task ?? "–"],
        ["attempts, failures", `${message.attempts ?? 0}, ${message.failures ?? 0} of ${message.max_attempts ?? "any number"}`],
        ["key", message.key ?? "–"],
        ["group", message.group ?? "–"],
        ["labels", (message.labels ?? []).join(", ") || "–"],
        ["due", <When moment={message.position} />],
        ["waits for", view?.status.waiting_for ?? "–"],
        ["last error", message.last_error ?? "–"],
      ]}
    />
  );
}

function JobActs(props: { queue: string; id: string; state: string; isThere: boolean; waitsFor: string | null; done: () => void }) {
  const client = useClient();
  const job = client.job(props.queue, props.id);
  const may = useMay();
  const maySend = may("queue", props.queue, "signal");
  if (!props.isThere) return null;
  const signal = props.waitsFor?.match(/signal '?([^' ]+)/)?.[1];
  return (
    <>
      {may("queue", props.queue, "manage") && (
        <div class="row">
          {props.state === "dead" && <Act label="Redrive" act={() => client.queue(props.queue).redrive([props.id])} done={props.done} />}
          <Act label="Cancel" danger act={() => job.cancel()} done={props.done} confirm={`Cancel ${props.id}? It is removed if it waits; if it runs, its worker is asked to end it.`} />
        </div>
      )}
      {props.waitsFor && maySend && (
        <Fields button="Send signal" onSubmit={(fields) => void job.send(fields["name"] ?? "", JSON.parse(fields["payload"] || "null")).then(props.done)}>
          <label>Signal <input name="name" required value={signal ?? ""} /></label>
          <label>Payload as JSON <input name="payload" /></label>
        </Fields>
      )}
    </>
  );
}

function Timeline({ message }: { message: wire.Message }) {
  const endings = message.history ?? [];
  const isHeld = message.state === "leased";
  return (
    <ol class="timeline">
      <li><When moment={message.created_at} /> put</li>
      {endings.map(([holder, token, since, until, how, error]) => (
        <li class={how === "released" ? "" : "bad"}>
          <When moment={since} /> claimed by <b>{holder}</b> with token <b>{token}</b>; {how} at <When moment={until} />
          {error && <code>{short(error, 300)}</code>}
        </li>
      ))}
      {isHeld && <li class="good"><When moment={message.since} /> claimed by <b>{message.holder}</b> with token <b>{message.token}</b>, until <When moment={message.until} /></li>}
      {message.state === "dead" && <li class="bad"><When moment={message.dead_at} /> dead</li>}
      {message.state === "done" && <li class="good"><When moment={message.ended_at} /> acknowledged by <b>{message.holder}</b> with token <b>{message.token}</b></li>}
    </ol>
  );
}

function Steps({ steps }: { steps: wire.JobStep[] }) {
  const rows = steps.map((step) => [
    step.branch ? `${step.branch}/${step.name}` : step.name,
    <Badge {...(step.state === "failed" ? { kind: "bad" as const } : step.state === "done" ? { kind: "good" as const } : {})}>{step.state}</Badge>,
    <Since at={step.at ?? null} />,
    step.failures ?? 0,
    <code>{step.error ?? short(step.result ?? "")}</code>,
  ]);
  return <Table heads={["step", "state", "recorded", "failures", "result"]} rows={rows} empty="Nothing is recorded." />;
}
