import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()
FIRST_EXAMPLE = README.split("<!-- first example: begin -->")[1].split("<!-- first example: end -->")[0]
BLOCKS = re.findall(r"```python\n(.*?)```", FIRST_EXAMPLE, re.DOTALL)


@pytest.mark.parametrize(("block", "value"), list(zip(BLOCKS, ["cat.png", "dog.png"], strict=True)), ids=["sync", "async"])
def test_the_first_example_runs(block: str, value: str, tmp_path: Path) -> None:
    answer = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert value in answer.stdout
    assert "[True]" in answer.stdout
    assert (tmp_path / "jobs.db").exists()
