"""The Django app: its commands, its checks and its admin pages."""

from django.apps import AppConfig


class HoldfastConfig(AppConfig):
    """`INSTALLED_APPS = ["holdfast.integrations.django", …]`."""

    name = "holdfast.integrations.django"
    label = "holdfast"
    verbose_name = "Holdfast"
    # Of a table that is not there: else a project that does not say which is told to choose.
    default_auto_field = "django.db.models.BigAutoField"
