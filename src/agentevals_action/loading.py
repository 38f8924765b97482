"""All code and templates of ours into memory, before code of a pull request runs beside us: what
lies on the disk it could change."""

import pkgutil
from importlib import import_module

import agentevals_action

#: What is imported late, so that a short run need not wait for it.
_LATE = (
    "anyio._backends._asyncio",  # of httpx
    "anyio.streams.tls",
    "_strptime",  # of `datetime.strptime`
    "asyncio",
    "certifi",
    "ctypes",
    "difflib",
    "email.message",
    "encodings.idna",
    "encodings.utf_8_sig",
    "github",
    "httpcore._backends.anyio",
    "html",
    "http.client",
    "jinja2.sandbox",
    "regex",
    "rich.box",
    "rich.console",
    "rich.markup",
    "rich.progress",
    "rich.table",
    "rich.text",
    "ssl",
    "urllib.request",
    "wcmatch.glob",
    "zipfile",
)


def load_all() -> None:
    """Imports every module of ours and what they import late, and reads the templates: a tenth of a
    second beside what a gate loads."""
    for module in pkgutil.walk_packages(
        agentevals_action.__path__, f"{agentevals_action.__name__}."
    ):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for name in _LATE:
        import_module(name)
    from agentevals_action.templating import packaged_templates

    packaged_templates()
