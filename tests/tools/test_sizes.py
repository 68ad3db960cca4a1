from pathlib import Path

from tools.sizes import report


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_each_package_has_its_files_lines_and_longest_function(tmp_path: Path) -> None:
    write(tmp_path, "src/holdfast/a.py", "def short():\n    return 1\n")
    write(tmp_path, "src/holdfast/b.py", "b = 1\n")
    assert [line.split() for line in report(tmp_path)][1:] == [["src/holdfast", "2", "3", "2"]]


def test_a_long_file_and_a_long_function_are_pointed_at(tmp_path: Path) -> None:
    write(tmp_path, "tools/long.py", "def long():\n" + "    call()\n" * 400)
    assert list(report(tmp_path))[-2:] == ["long: tools/long.py: 401 lines", "long: tools/long.py:1: long has 401 lines"]


def test_generated_code_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "src/holdfast/_sync/a.py", "# Generated from x by y\n" + "call()\n" * 400)
    assert len(list(report(tmp_path))) == 1
