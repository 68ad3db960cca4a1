"""The URLs of the site: the admin, and a view that orders."""

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path

from tests.django_site.models import Order
from tests.django_site.tasks import pack


def order(request: HttpRequest) -> HttpResponse:
    """Create an order and its job in one transaction."""
    with transaction.atomic():
        made = Order.objects.create(item=request.GET.get("item", "paper"))
        pack.enqueue(made.pk)
    return HttpResponse(str(made.pk))


urlpatterns = [path("admin/", admin.site.urls), path("order/", order)]
