"""A file of a change."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ChangedFile:
    """A file of the change, POSIX paths relative to the repository; `previous_path` only when it
    was renamed."""

    path: str
    status: str
    previous_path: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Its path and, if it was renamed, the former one. A copied file has none."""
        is_renamed = self.status == "renamed" and self.previous_path
        return (
            (self.path, self.previous_path) if is_renamed and self.previous_path else (self.path,)
        )
