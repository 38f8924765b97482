"""The variants of a suite, checked where they are declared."""

from collections.abc import Iterator, Sequence

from agentevals_action.formatting import counted, join_choices
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.suite import Suite
from agentevals_action.model.variant import Variant, smallest_p
from agentevals_action.settings import MAX_SAMPLES, Settings
from agentevals_action.suites.documents.diagnostics import DiagnosticCollector
from agentevals_action.suites.target_use import TargetUse


def check_variants(
    suite: Suite, targets: TargetUse, diagnostics: DiagnosticCollector
) -> Sequence[Variant]:
    """The variants of a suite; what cannot run is an error. A variant for all skills is dropped
    where no test has a skill to leave out, as in a list of triggers."""
    kept = []
    for variant in suite.variants:
        arm = suite.arm(variant)
        if not arm.tests and variant.location.path == FILE:
            continue
        kept.append(variant)
        if variant.target and not targets.variant(variant):
            continue
        if variant.target and (skills := [skill for test in arm.tests for skill in test.skills]):
            targets.check_skills(variant.target, variant.location, skills)
        for problem, advice in _problems(suite, variant, arm):
            of_variant = f"the variant `{variant.name}` cannot run: {problem}"
            diagnostics.error(variant.location, of_variant, advice)
    return tuple(kept)


def _problems(suite: Suite, variant: Variant, arm: Suite) -> Iterator[tuple[str, str]]:
    if not arm.tests:
        problem = "no test has a skill, and more to score than whether it is opened"
        yield problem, "name the skill in `workspace: {skills: […]}`, or another `target` here"
    elif not variant.skill and not variant.target:
        agents = [agent for test in arm.tests if (agent := arm.find_agent(test))]
        if blind := next((agent for agent in agents if not agent.skill_folders), None):
            problem = f"the target `{blind.name}` finds no skill, so nothing differs without one"
            yield problem, "name a coding agent, or a target of the provider `cli`"
    if variant.target and len(suite.judges) > 1:
        names = join_choices(sorted(map(str, suite.judges)))
        problem = f"both arms must have the same judge, and the tests have {names}"
        yield problem, "name the judge in the evaluators (`target`)"


def undecidable_conditions(suite: Suite, settings: Settings) -> Iterator[Diagnostic]:
    """The errors of conditions (`must`) that no result of so few tests and samples can decide."""
    for variant in (variant for variant in suite.variants if variant.must):
        tests = suite.arm(variant).tests
        units = {test.conversation_id or ("", test.id) for test in tests}
        enough = (
            count
            for count in range(settings.samples, MAX_SAMPLES + 1)
            if smallest_p(len(units), count, count) <= settings.alpha
        )
        needed = next(enough, None)
        if needed != settings.samples:
            size = f"{counted(len(tests), 'test')} × {counted(settings.samples, 'sample')}"
            problem = f"`must` of `{variant.name}` cannot be decided: {size} can show nothing"
            more = f"set `samples: {needed}` or more, " if needed else ""
            yield Diagnostic(variant.location, problem, f"{more}add tests, or remove `must`")
