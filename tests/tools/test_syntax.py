"""Parsing many files in a process whose garbage may be collected meanwhile."""

import ast
import gc
from pathlib import Path

from tools.syntax import parsed

TEXT = Path(__file__).read_text()
TREE = ast.dump(parsed(TEXT))


class Logs:
    """Parses something when it is collected, as one does whose loss is logged with a traceback."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        ast.parse("lost = 1")


def test_a_file_is_parsed_whatever_is_collected_meanwhile() -> None:
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(20):
            Logs()
            assert ast.dump(parsed(TEXT)) == TREE
    finally:
        gc.set_threshold(*before)
