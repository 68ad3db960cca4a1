"""Ten modules as programs for Celery have them: written against Celery's names, and with its imports."""

ORIGINS = {
    "mail": """
from smtplib import SMTPException

from celery import shared_task

outbox, broken = [], ["first"]


@shared_task(bind=True, max_retries=5, default_retry_delay=60)
def send_welcome(self, address, *, language="en"):
    try:
        if broken:
            raise SMTPException(broken.pop())
        outbox.append((address, language, self.request.retries))
    except SMTPException as error:
        raise self.retry(exc=error, countdown=2**self.request.retries)
""",
    "webhooks": """
from celery import shared_task

calls = []


@shared_task(autoretry_for=(ConnectionError,), retry_backoff=5, retry_backoff_max=300, retry_kwargs={"max_retries": 4})
def deliver(url, body):
    calls.append(url)
    if len(calls) < 4:
        raise ConnectionError("refused")
    return {"status": 200, "tries": len(calls), "body": body}


@shared_task(autoretry_for=(Exception,), dont_autoretry_for=(ValueError,), retry_backoff=True, max_retries=3)
def verify(url):
    calls.append(url)
    raise ValueError("the signature is wrong")
""",
    "thumbnails": """
from celery import chord, group, shared_task

SIZES = (64, 256, 1024)


@shared_task
def resize(path, size):
    return f"{path}@{size}"


@shared_task
def publish(paths, gallery):
    return {"gallery": gallery, "paths": sorted(paths)}


def make_all(path, gallery):
    return chord(group(resize.s(path, size) for size in SIZES))(publish.s(gallery))
""",
    "reports": """
from celery import Celery, chain

app = Celery("reports", broker="redis://localhost:6379/0", backend="redis://localhost:6379/1")
app.conf.update(task_serializer="json", accept_content=["json"], timezone="Europe/Berlin", enable_utc=True, result_expires=86400)


@app.task(name="reports.collect", queue="reports")
def collect(month):
    return [month * number for number in range(1, 4)]


@app.task(name="reports.total", queue="reports")
def total(rows, factor=1):
    return sum(rows) * factor


@app.task(name="reports.render", queue="reports")
def render(amount, title):
    return f"{title}: {amount}"


def monthly(month):
    return chain(collect.s(month), total.s(factor=10), render.s("Sales")).apply_async()
""",
    "importing": """
from celery import shared_task

seen = []


@shared_task(bind=True)
def import_rows(self, rows):
    for number, row in enumerate(rows, 1):
        self.update_state(state="PROGRESS", meta={"current": number, "total": len(rows)})
        seen.append((self.request.id, row.strip()))
    return {"imported": len(rows)}
""",
    "cleanup": """
from datetime import timedelta

from celery import Celery
from celery.schedules import crontab

app = Celery("cleanup", broker="amqp://guest@localhost//")
app.conf.timezone = "UTC"
app.conf.beat_schedule = {
    "sessions-every-night": {"task": "cleanup.sessions", "schedule": crontab(minute=30, hour=3), "kwargs": {"older_than": 14}},
    "uploads-every-hour": {"task": "cleanup.uploads", "schedule": timedelta(hours=1), "args": ("tmp",)},
    "heartbeat": {"task": "cleanup.uploads", "schedule": 30.0, "args": ("beat",)},
}


@app.task(name="cleanup.sessions", ignore_result=True)
def sessions(older_than):
    pass


@app.task(name="cleanup.uploads", ignore_result=True)
def uploads(folder):
    pass
""",
    "payments": """
from celery import shared_task
from celery.exceptions import MaxRetriesExceededError

tries, alarms = [], []


@shared_task(bind=True, acks_late=True, max_retries=2, default_retry_delay=30)
def charge(self, order, amount):
    tries.append(order)
    try:
        raise TimeoutError("the bank does not answer")
    except TimeoutError:
        try:
            self.retry()
        except MaxRetriesExceededError:
            alarm.delay(order, reason="timeout")
            return "given up"


@shared_task
def alarm(order, reason):
    alarms.append((order, reason))
""",
    "search": """
from celery import shared_task
from celery.result import AsyncResult

index = {}


@shared_task(name="search.update", priority=9)
def update(key, text):
    index[key] = text
    return key


@shared_task(name="search.rebuild")
def rebuild(documents):
    return [update.delay(key, text).id for key, text in sorted(documents.items())]


def states(ids):
    return [AsyncResult(one).state for one in ids]
""",
    "notifications": """
from datetime import datetime, timedelta, timezone

from celery import group, shared_task

sent = []


@shared_task
def push(user, text):
    sent.append((user, text))
    return user


def remind(user, text):
    now = datetime.now(timezone.utc)
    return push.apply_async((user, text), eta=now + timedelta(hours=1), expires=now + timedelta(days=1))


def broadcast(users, text):
    return group(push.s(user, text) for user in users).apply_async()
""",
    "exports": """
from celery import shared_task, signature
from celery.exceptions import Reject, SoftTimeLimitExceeded

done = []


@shared_task(bind=True, soft_time_limit=300, time_limit=360, name="exports.write")
def write(self, rows, fmt="csv"):
    try:
        if fmt not in ("csv", "json"):
            raise Reject(f"no such format: {fmt}")
        done.append((fmt, len(rows)))
        return f"{self.request.id}.{fmt}"
    except SoftTimeLimitExceeded:
        done.clear()
        raise


def by_name(rows, fmt):
    return signature("exports.write", args=(rows,), kwargs={"fmt": fmt}).delay()


def later(rows):
    return signature("exports.write", args=(rows,), countdown=60).apply_async()
""",
}
"""By the name of the module."""
