/** The dashboard: sign-in, navigation, and the screen that the address names. */

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { Holdfast, NotAllowed } from "../../client/src/index.ts";
import { Live } from "./live.ts";
import { Audit, Health, Tokens } from "./screens/administration.tsx";
import { DeadLetters } from "./screens/dead.tsx";
import { DictScreen, Dicts } from "./screens/dicts.tsx";
import { Events } from "./screens/events.tsx";
import { Locks } from "./screens/locks.tsx";
import { MessageScreen } from "./screens/message.tsx";
import { Overview } from "./screens/overview.tsx";
import { QueueScreen } from "./screens/queue.tsx";
import { Queues } from "./screens/queues.tsx";
import { Runs } from "./screens/runs.tsx";
import { Schedules } from "./screens/schedules.tsx";
import { WorkerScreen, Workers } from "./screens/workers.tsx";
import { type Session, SessionContext, to, useMay, usePath } from "./state.ts";
import { ThemeButton } from "./theme.tsx";
import { seen } from "./unseen.ts";

/** The screens of the navigation in groups, each with the letter that leads to it after `g`. */
const GROUPS = [
  ["", [["overview", "Overview", "o"]]],
  ["Work", [["queues", "Queues", "q"], ["dead", "Dead letters", "d"], ["workers", "Workers", "w"], ["runs", "Durable jobs", "j"], ["schedules", "Schedules", "s"]]],
  ["State", [["dicts", "Dicts", "i"], ["locks", "Locks and leaders", "l"]]],
  ["Server", [["events", "Live events", "e"], ["tokens", "Tokens", "t"], ["audit", "Audit", "a"], ["health", "Health", "h"]]],
] as const;
const SCREENS = GROUPS.flatMap(([, screens]) => screens as readonly (readonly [string, string, string])[]);

function Screen({ path }: { path: string[] }) {
  const [screen = "overview", name, part] = path;
  switch (screen) {
    case "queues":
      return name ? <QueueScreen key={name} name={name} part={part ?? "ready"} group={path[3] === "group" ? (path[4] ?? "") : undefined} /> : <Queues />;
    case "message":
      return <MessageScreen key={`${name} ${part}`} queue={name!} id={part!} />;
    case "dead":
      return <DeadLetters />;
    case "dicts":
      return name ? <DictScreen key={name} name={name} /> : <Dicts />;
    case "locks":
      return <Locks />;
    case "schedules":
      return <Schedules />;
    case "runs":
      return <Runs key={name} queue={name} />;
    case "workers":
      return name ? <WorkerScreen key={name} name={name} /> : <Workers />;
    case "events":
      return <Events topic={name} />;
    case "tokens":
      return <Tokens />;
    case "audit":
      return <Audit />;
    case "health":
      return <Health />;
    default:
      return <Overview />;
  }
}

/** `g` and a letter goes to a screen, `/` to the search, `?` shows the keys. */
function useKeyboard(help: () => void): void {
  useEffect(() => {
    let isGoing = false;
    const pressed = (event: KeyboardEvent) => {
      const isTyping = (event.target as HTMLElement).closest("input, textarea, select, dialog");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      const screen = isGoing && SCREENS.find(([, , letter]) => letter === event.key);
      isGoing = event.key === "g";
      if (screen) location.hash = to(screen[0]);
      if (event.key === "?") help();
      if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLInputElement>("[data-search]")?.focus();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function Keys({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} aria-label="Keys">
      <h2>Keys</h2>
      <dl>
        {SCREENS.map(([, title, letter]) => <><dt><kbd>g</kbd> <kbd>{letter}</kbd></dt><dd>{title}</dd></>)}
        <dt><kbd>/</kbd></dt><dd>search on this screen</dd>
        <dt><kbd>?</kbd></dt><dd>these keys</dd>
      </dl>
      <div class="row end"><button type="button" onClick={close}>Close</button></div>
    </dialog>
  );
}

function Navigation({ current, session, help }: { current: string; session: Session; help: () => void }) {
  const may = useMay();
  const nav = useRef<HTMLElement>(null);
  // On a phone the screens stand in one line, of which a part is seen.
  useEffect(() => nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [current]);
  const isShown = (screen: string) => (screen === "audit" ? may("server", "audit", "read") : screen !== "tokens" || may("server", "", "admin"));
  return (
    <header>
      <a class="brand" href={to("overview")}>Holdfast</a>
      <nav aria-label="Screens" ref={nav}>
        {GROUPS.map(([group, screens]) => (
          <>
            {group && <span class="group">{group}</span>}
            {screens.filter(([screen]) => isShown(screen)).map(([screen, title, letter]) => (
              <a href={to(screen)} title={`g ${letter}`} {...(screen === current ? { "aria-current": "page" as const } : {})}>{title}</a>
            ))}
          </>
        ))}
      </nav>
      <div class="foot">
        {session.isSignedIn && <button type="button" onClick={() => location.reload()}>Sign out</button>}
        <ThemeButton />
        <button type="button" onClick={help}>Keys</button>
      </div>
    </header>
  );
}

async function signedIn(token: string, namespace: string): Promise<Session> {
  const url = `${location.origin}${namespace ? `/ns/${encodeURIComponent(namespace)}` : ""}`;
  const client = new Holdfast(url, { ...(token ? { token } : {}), patience: { forS: 5 } });
  return { client, about: await client.about(), live: new Live(client), isSignedIn: token !== "" };
}

function SignIn({ onSession, refused }: { onSession: (session: Session) => void; refused: string | undefined }) {
  const [failed, setFailed] = useState(refused);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    signedIn(String(form.get("token")).trim(), String(form.get("namespace")).trim()).then(onSession, (error: Error) => setFailed(error.message));
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
  const [session, setSession] = useState<Session>();
  const [refused, setRefused] = useState<string>();
  const [asks, setAsks] = useState(false);
  const [helps, setHelps] = useState(false);
  useKeyboard(() => setHelps(true));
  useEffect(() => {
    signedIn("", "").then(setSession, (error: Error) => (setAsks(true), setRefused(error instanceof NotAllowed ? undefined : error.message)));
  }, []);
  if (!session) return asks ? <SignIn onSession={setSession} refused={refused} /> : <main aria-busy="true" />;
  const named = path[0] === "message" ? "queues" : path[0];
  const current = SCREENS.find(([screen]) => screen === named)?.[0] ?? "overview";
  document.title = seen(`${path[1] ?? SCREENS.find(([screen]) => screen === current)?.[1] ?? "Overview"} · Holdfast`);
  return (
    <SessionContext.Provider value={session}>
      <Navigation current={current} session={session} help={() => setHelps(true)} />
      {helps && <Keys close={() => setHelps(false)} />}
      <main><Screen path={path} /></main>
    </SessionContext.Provider>
  );
}

render(<Dashboard />, document.getElementById("app")!);
