/** One message: its lease timeline, why it is not running, its steps, errors and payload. */

import { NotAllowed, type wire } from "../../../client/src/index.ts";
import { Act, Badge, Facts, Failure, Fields, type Kind, Since, Table, Value, When, short, withDates } from "../parts.tsx";
import { to, useClient, useLoaded, useMay } from "../state.ts";
import { Timeline } from "../timeline.tsx";

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
      return { message: page.messages[0], now: page.now ?? 0, view };
    },
    `${queue} ${id}`,
    [`watch:queue:${queue}`],
  );
  const message = data?.message;
  const view = data?.view;
  return (
    <>
      <p class="path"><a href={to("queues", queue)}>Queue {queue}</a></p>
      <h1>Message {id} {message && <StateBadge state={view?.status.state ?? message.state ?? "ready"} />}</h1>
      <Failure error={error} />
      {data && <JobActs queue={queue} id={id} state={message?.state ?? "ready"} isThere={message !== undefined} waitsFor={view?.status.waiting_for ?? null} done={reload} />}
      {view && <p class="said">{withDates(view.explanation.sentence)}</p>}
      {data && !message && !view && <p class="quiet">It is not in the queue: it is done, was removed, or never was.</p>}
      {message && <MessageFacts message={message} view={view} />}
      {message && <><h2>Lease timeline</h2><Timeline message={message} now={data!.now} /></>}
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

const LOOKS: Record<string, Kind> = { dead: "bad", failed: "bad", cancelled: "warn", leased: "info", running: "info", done: "good", ready: "info" };

function StateBadge({ state }: { state: string }) {
  return <Badge kind={LOOKS[state]}>{state}</Badge>;
}

function MessageFacts({ message, view }: { message: wire.Message; view: wire.JobView | undefined }) {
  return (
    <Facts
      facts={[
        ["task", view?.status.task ?? "–"],
        ["attempts", `${message.attempts ?? 0}`],
        ["failures", `${message.failures ?? 0}${message.max_attempts == null ? "" : ` of ${message.max_attempts} that it may have`}`],
        ["key", message.key ?? "–"],
        ["group", message.group ?? "–"],
        ["labels", (message.labels ?? []).join(", ") || "–"],
        ["due", message.state === "ready" && <When moment={message.position} />],
        ["waits for", withDates(view?.status.waiting_for ?? "–")],
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
  const cancel = async () => ((await job.cancel()) === "requested" ? "Its worker is asked to end it." : undefined);
  const send = async (fields: Record<string, string>) => {
    await job.send(fields["name"] ?? "", JSON.parse(fields["payload"] || "null"));
    props.done();
  };
  const signal = props.waitsFor?.match(/signal '?([^' ]+)/)?.[1];
  return (
    <>
      {may("queue", props.queue, "manage") && (
        <div class="row">
          {props.state === "dead" && <Act label="Redrive" act={() => client.queue(props.queue).redrive([props.id])} done={props.done} />}
          {props.state !== "done" && <Act label="Cancel" danger act={cancel} done={props.done} confirm={`Cancel ${props.id}? It is removed if it waits; if it runs, its worker is asked to end it.`} />}
        </div>
      )}
      {props.waitsFor && maySend && (
        <Fields button="Send signal" onSubmit={send}>
          <label>Signal <input name="name" required key={signal} defaultValue={signal ?? ""} /></label>
          <label>Payload as JSON <input name="payload" /></label>
        </Fields>
      )}
    </>
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
