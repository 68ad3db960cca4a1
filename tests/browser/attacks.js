// What a page of another site can try. Each attack resolves when the browser is done with it, to what the page learned: null if nothing.

const PATIENCE_MS = 50_000

const told = async reply => reply.type === "opaque" ? null : `${reply.status}: ${await reply.text()}`
const fetched = (url, init) => fetch(url, init).then(told, () => null)
const posted = (url, body, init) => fetched(url, { method: "POST", body, ...init })
const text = { "Content-Type": "text/plain" }
const json = { "Content-Type": "application/json" }

// Resolves with the first of the events that comes, by what `outcome` makes of it.
const first = (target, outcomes) => new Promise((resolve, reject) => {
  for (const [name, outcome] of Object.entries(outcomes)) target.addEventListener(name, event => resolve(outcome(event)))
  setTimeout(() => reject(new Error(`none of ${Object.keys(outcomes)} came`)), PATIENCE_MS)
})

async function element(name, attributes, parent = document.body) {
  const made = Object.assign(document.createElement(name), attributes)
  const done = first(made, { load: () => name === "iframe" ? null : "loaded", error: () => null })
  parent.append(made)
  const learned = await done
  made.remove()
  return learned
}

// A form of which the browser joins name and value by "=": the JSON is cut there.
async function form(url, body, enctype) {
  const frame = document.createElement("iframe")
  frame.name = `frame-${Math.random()}`
  document.body.append(frame)
  const form = Object.assign(document.createElement("form"), { action: url, method: "POST", enctype, target: frame.name })
  const at = body.indexOf("=")
  form.append(Object.assign(document.createElement("input"), { name: body.slice(0, at), value: body.slice(at + 1) }))
  document.body.append(form)
  const done = first(frame, { load: () => null })
  form.submit()
  await done
  try { return frame.contentDocument && frame.contentDocument.URL !== "about:blank" ? frame.contentDocument.body.innerText : null } catch { return null }
}

function request(url, body) {
  const asked = new XMLHttpRequest()
  asked.open("POST", url)
  const done = first(asked, { load: () => asked.responseText, error: () => null })
  asked.send(body)
  return done
}

const POSTS = {
  "fetch no-cors": (url, body) => posted(url, body, { mode: "no-cors", headers: text }),
  "fetch no-cors without a type": (url, body) => posted(url, new Blob([body]), { mode: "no-cors" }),
  "fetch cors": (url, body) => posted(url, body, { headers: text }),
  "fetch cors as JSON": (url, body) => posted(url, body, { headers: json }),
  "fetch keepalive": (url, body) => posted(url, body, { mode: "no-cors", keepalive: true }),
  "fetch with credentials": (url, body) => posted(url, body, { mode: "no-cors", credentials: "include" }),
  "form as text": (url, body) => form(url, body, "text/plain"),
  "form as fields": (url, body) => form(url, body, "application/x-www-form-urlencoded"),
  "form as parts": (url, body) => form(url, body, "multipart/form-data"),
  "XMLHttpRequest": request,
  "beacon": (url, body) => { navigator.sendBeacon(url, body); return null },
  "beacon as JSON": (url, body) => { navigator.sendBeacon(url, new Blob([body], { type: "application/json" })); return null },
}

const GETS = {
  "fetch": url => fetched(url),
  "fetch no-cors": url => fetched(url, { mode: "no-cors" }),
  "image": url => element("img", { src: url }),
  "script": url => element("script", { src: url }),
  "frame": url => element("iframe", { src: url }),
  "style sheet": url => element("link", { rel: "stylesheet", href: url }, document.head),
}

// Streams, of which the page would read the events.
const WATCHES = {
  "fetch no-cors": url => {
    const end = new AbortController()
    return fetched(url, { mode: "no-cors", signal: end.signal }).finally(() => end.abort())
  },
  "event source": url => {
    const source = new EventSource(url)
    return first(source, { error: () => null, put: event => event.data, message: event => event.data }).finally(() => source.close())
  },
  "web socket": url => {
    const socket = new WebSocket(url.replace("http", "ws"))
    return first(socket, { error: () => null, open: () => "open", message: event => event.data }).finally(() => socket.close())
  },
}
