"""The suite's own asserts are rewritten, so that a failure shows what was compared."""

import pytest

pytest.register_assert_rewrite("holdfast.testing.conformance")
