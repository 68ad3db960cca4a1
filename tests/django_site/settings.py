"""Settings of the site that the tests of Django share; a test changes TASKS and DATABASES for itself."""

import json
import os
from importlib.util import find_spec

SECRET_KEY = "of tests"  # noqa: S105 - nothing is protected by it
DEBUG = True
USE_TZ = True
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "tests.django_site.urls"
DATABASES = {"default": json.loads(os.environ.get("SITE_DB", '{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}'))}
TASKS = {
    "default": {
        "BACKEND": "holdfast.integrations.django.HoldfastBackend",
        "QUEUES": ["default", "queue_1"],
        "OPTIONS": {"url": "database:default"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    *([] if find_spec("django.tasks") else ["django_tasks"]),
    "holdfast.integrations.django",
    "tests.django_site",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
