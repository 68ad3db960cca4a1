/** The dashboard: sign-in, navigation, and the screen that the address names. */

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";

import { Holdfast, NotAllowed } from "../../client/src/index.ts";
import { Audit, DictScreen, Dicts, Events, Health, Locks, Overview, Schedules, Workers } from "./others.tsx";
import { MessageScreen, QueueScreen, Queues } from "./queues.tsx";
import { ClientContext, to, usePath } from "./state.ts";

const SCREENS = ["overview", "queues", "dicts", "locks", "schedules", "workers", "events", "audit", "health"] as const;

function Screen({ path }: { path: string[] }) {
  const [screen = "overview", name, part] = path;
  switch (screen) {
    case "queues":
      return name ? <QueueScreen key={`${name} ${part}`} name={name} state={(part ?? "ready") as "ready"} /> : <Queues />;
    case "message":
      return <MessageScreen key={`${name} ${part}`} queue={name!} id={part!} />;
    case "dicts":
      return name ? <DictScreen key={name} name={name} /> : <Dicts />;
    case "locks":
      return <Locks />;
    case "schedules":
      return <Schedules />;
    case "workers":
      return <Workers />;
    case "events":
      return <Events topic={name} />;
    case "audit":
      return <Audit />;
    case "health":
      return <Health />;
    default:
      return <Overview />;
  }
}

function connect(token: string, namespace: string): Holdfast {
  const url = `${location.origin}${namespace ? `/ns/${encodeURIComponent(namespace)}` : ""}`;
  return new Holdfast(url, { ...(token ? { token } : {}), patience: { forS: 5 } });
}

function SignIn({ onClient, refused }: { onClient: (client: Holdfast) => void; refused: string | undefined }) {
  const [failed, setFailed] = useState(refused);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const client = connect(String(form.get("token")).trim(), String(form.get("namespace")).trim());
    try {
      await client.about();
      onClient(client);
    } catch (error) {
      setFailed((error as Error).message);
    }
  };
  return (
    <main>
      <form class="signin" onSubmit={submit}>
        <h1>Holdfast</h1>
        <label>Token <input name="token" type="password" autocomplete="off" required /></label>
        <label>Namespace, if the token is of one <input name="namespace" autocomplete="off" /></label>
        <button type="submit">Sign in</button>
        <p class="quiet">The token is kept in the memory of this page only.</p>
        {failed && <p class="note" role="alert">{failed}</p>}
      </form>
    </main>
  );
}

function Dashboard() {
  const path = usePath();
  const [client, setClient] = useState<Holdfast>();
  const [refused, setRefused] = useState<string>();
  const [asks, setAsks] = useState(false);
  useEffect(() => {
    const open = connect("", "");
    open.about().then(
      () => setClient(open),
      (error: Error) => (setAsks(true), setRefused(error instanceof NotAllowed ? undefined : error.message)),
    );
  }, []);
  if (!client) return asks ? <SignIn onClient={setClient} refused={refused} /> : <main aria-busy="true" />;
  const current = path[0] === "message" ? "queues" : (path[0] ?? "overview");
  return (
    <ClientContext.Provider value={client}>
      <header>
        <strong>Holdfast</strong>
        <nav aria-label="Screens">
          {SCREENS.map((screen) => (
            <a href={to(screen)} {...(screen === current ? { "aria-current": "page" as const } : {})}>{screen}</a>
          ))}
        </nav>
      </header>
      <main><Screen path={path} /></main>
    </ClientContext.Provider>
  );
}

render(<Dashboard />, document.getElementById("app")!);
