"""The table `[tool.holdfast]` of the nearest pyproject.toml: the store of a project, if neither `--url` nor HOLDFAST_URL names one."""

import os
from pathlib import Path
from typing import Any, NamedTuple

KNOWN = ("url",)


class ProjectSettings(NamedTuple):
    """What a project says, and where."""

    file: Path
    url: str | None


def adopt_project_url() -> None:
    """Let this process, and programs that it starts, use the store of the project, unless HOLDFAST_URL names one."""
    if "HOLDFAST_URL" in os.environ:
        return
    found = project_settings()
    if found is not None and found.url is not None:
        os.environ["HOLDFAST_URL"] = found.url


def project_settings() -> ProjectSettings | None:
    """The settings of the nearest pyproject.toml that has some, from the current folder upwards; ValueError for any that is not known."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        table = _table(file) if file.is_file() else None
        if table is not None:
            return ProjectSettings(file, _url(table, file))
    return None


def _table(file: Path) -> Any:
    import tomllib

    try:
        tools: Any = tomllib.loads(file.read_text("utf-8")).get("tool", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not TOML ({error}): correct it, or give --url") from None
    return tools.get("holdfast") if isinstance(tools, dict) else None


def _url(table: Any, file: Path) -> str | None:
    unknown = [name for name in table if name not in KNOWN] if isinstance(table, dict) else ["tool.holdfast itself"]
    if unknown:
        raise ValueError(f"unknown setting {unknown[0]!r} in [tool.holdfast] of {file}; supported: {', '.join(KNOWN)}")
    url = table.get("url")
    if url is None:
        return None
    if not isinstance(url, str):
        raise ValueError(f"url in [tool.holdfast] of {file} must be a text")  # noqa: TRY004 - the user wrote it
    return _beside(url, file.parent)


def _beside(url: str, folder: Path) -> str:
    """The URL, in which a relative path is one from the folder of the project, wherever the command is called."""
    from urllib.parse import quote

    scheme, mark, rest = url.partition("://")
    is_relative = scheme in ("sqlite", "lmdb") and rest.startswith("/") and not rest.startswith("//")
    return f"{scheme}{mark}/{quote(str(folder))}{rest}" if is_relative else url
