"""A model without a table: it carries the permissions of the admin pages."""

from django.db import models


class Job(models.Model):
    """A job, as the permissions `holdfast.view_job` and `holdfast.change_job` mean one."""

    class Meta:
        """Nothing is stored."""

        managed = False
        default_permissions = ("view", "change")
        verbose_name = "job"
        verbose_name_plural = "jobs"

    def __str__(self) -> str:
        return "job"
