"""Orders, so that jobs have rows to commit with."""

from django.db import models


class Order(models.Model):
    """One order."""

    item = models.CharField(max_length=100)
    packed = models.BooleanField(default=False)

    class Meta:
        app_label = "django_site"

    def __str__(self) -> str:
        return str(self.item)
