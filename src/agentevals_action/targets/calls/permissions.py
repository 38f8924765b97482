"""The variables that the targets of a pull request may use.

Attack: a pull request writes `${{ AWS_SECRET_ACCESS_KEY }}` into the URL of a target, or keeps the
key of a target and replaces its `base_url`. The run would send the secret to the attacker."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import joined
from agentevals_action.model.target import Target
from agentevals_action.targets.variables import names_in


@dataclass(frozen=True)
class Permissions:
    """What targets outside of the tree `trusted` (the base's) may use: the variables
    `named` in the input `env`, the usual key of a vendor for the vendor's own address, and what the
    targets of the base use (`used`: a variable with its destination)."""

    trusted: Path | None = None
    named: frozenset[str] = frozenset()
    used: frozenset[tuple[str, str]] = frozenset()

    def check(self, target: Target, variables: Mapping[str, str], root: Path) -> None:
        """Raises AttemptError of kind `configuration` if a target of the tree `root`, which is
        resolved, uses another variable; `variables` are the known ones."""
        if root == self.trusted:
            return
        destination = target.destination()
        allowed = {name for name, address in self.used if address == destination} | self.named
        if target.asks_vendor:
            allowed.add(target.key_variable)
        if new := sorted({*used_variables(target, variables)} - allowed):
            # The address may contain a secret, in a form that redaction does not know.
            raise AttemptError(
                "configuration",
                f"the target {target.name} uses {joined(new)}, which no target of the base sends "
                "to the same address; it can do so after the merge",
                f"name {'it' if len(new) == 1 else 'them'} in the input `env` if the programs of "
                "every pull request may read it",
            )


def used_variables(target: Target, variables: Mapping[str, str]) -> Iterator[str]:
    """The names of the known variables whose values a resolved target uses."""
    for name in (*names_in(target.definition), *target.default_keys()):
        if name in variables:
            yield name
