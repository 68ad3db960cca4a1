"""The dashboard with a million messages in 200 queues, beside the same queues with a thousand."""

import logging
from pathlib import Path
from statistics import median

import pytest

from bench.dashboard import TIMES, compared
from tests.browser.rows import PAGE

pytestmark = [pytest.mark.verify, pytest.mark.xdist_group("browser")]

_log = logging.getLogger(__name__)


@pytest.mark.timeout(1_500)
def test_a_million_messages_are_looked_at_like_a_thousand(tmp_path: Path) -> None:
    few, many = compared(tmp_path)
    slow = {}
    for screen, visits in many.items():
        took, beside = median(visits.took_s), median(few[screen].took_s)
        _log.warning("%s: %.2f s with a thousand messages, %.2f s with a million", screen, beside, took)
        if took > TIMES * beside + 0.1:
            slow[screen] = took
        assert max(visits.most, visits.total) <= PAGE, screen
    assert slow == {}
