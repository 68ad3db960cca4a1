"""The type of the values of a handle: Any unless the program says it, so that `Queue("jobs")` needs no annotation."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Value = TypeVar("Value", default=Any)
else:
    from typing import TypeVar

    # Python itself knows defaults from 3.13 on; type checkers do for every version.
    Value = TypeVar("Value")
