"""Programs as Celery's tutorials have them, with the imports changed and nothing else."""

FIRST_STEPS = """
from holdfast.surfaces.celery import Celery

app = Celery("tasks", broker="pyamqp://guest@localhost//", backend="rpc://")


@app.task
def add(x, y):
    return x + y
"""

FIRST_STEPS_CONFIGURED = """
broker_url = "pyamqp://"
result_backend = "rpc://"

task_serializer = "json"
result_serializer = "json"
accept_content = ["json"]
timezone = "Europe/Oslo"
enable_utc = True

task_routes = {"tasks.add": "low-priority"}
"""

NEXT_STEPS_APP = """
from holdfast.surfaces.celery import Celery

app = Celery("proj", broker="amqp://", backend="rpc://", include=["proj.tasks"])

app.conf.update(result_expires=3600)

if __name__ == "__main__":
    app.start()
"""

NEXT_STEPS_TASKS = """
from .celery import app


@app.task
def add(x, y, debug=False):
    return x + y


@app.task
def mul(x, y):
    return x * y


@app.task
def xsum(numbers):
    return sum(numbers)
"""
