"""Calls of a task that type checkers must refuse: each line is marked as wrong, and a mark that is not needed is an error."""

from holdfast import JobContext, Task, Tasks

app = Tasks("shop")


@app.task
def send(to: str, *, text: str = "") -> int:
    return len(to + text)


@app.task
def render(job: JobContext, page: int) -> str:
    return f"{job.id} {page}"


def wrong(send: Task[[str], int, int], render: Task[[int], str, str]) -> None:
    send.put(7)  # type: ignore[arg-type]
    send.put()  # type: ignore[call-arg]
    send.using(delay_s=1.0).put("ann", "bob")  # type: ignore[call-arg]
    length: str = send.put("ann").result()  # type: ignore[assignment]
    render.put("3")  # type: ignore[arg-type]
    assert length


send.put("ann", txt="hi")  # type: ignore[call-arg]
send.put_many([render.args(3)])  # type: ignore[list-item]
app.task(concurency=3)  # type: ignore[call-overload]
app.schedule("@daily", send, 7)  # type: ignore[arg-type]
app.worker().put(1)  # type: ignore[arg-type]


@app.batch()
def index(pages: list[str]) -> list[int]:
    return [len(page) for page in pages]


index.put(7)  # type: ignore[arg-type]
index.put(["a", "b"])  # type: ignore[arg-type]
app.batch(size=3)(send)  # type: ignore[arg-type]
