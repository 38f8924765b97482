"""`init`: a first suite, its target, the configuration and the workflow for the user's agent."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import click
from pydantic import ValidationError

from agentevals_action import templating
from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.escaping import printable
from agentevals_action.formatting import joined
from agentevals_action.model.quarantine import FILE as CONFIGURATION
from agentevals_action.suites.configuration_file import read_configuration
from agentevals_action.suites.find import find_suites, unnamed_suites
from agentevals_action.suites.find_skills import SkillSettings, find_skill_suites
from agentevals_action.suites.proposed_runners import ProposedRunner, propose_runners
from agentevals_action.suites.target_use import Catalog
from agentevals_action.system.child_environment import is_never_passed
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.tree_files import output_errors
from agentevals_action.system.git import GitRepository
from agentevals_action.targets.registry import PROVIDERS

_SUITE, _TARGETS = "evals/EVAL.yaml", ".agentv/targets.yaml"
_WORKFLOW, _RULES = ".github/workflows/evals.yml", ".gitignore"
#: What git must ignore, each pattern with a path that it matches.
_IGNORED = {"/agentevals-report/": "agentevals-report/report.html", ".env": ".env"}

_CODE = re.compile(
    r"\.(py|js|jsx|mjs|cjs|ts|tsx|go|rs|rb|java|kt|cs|php|swift|scala|ex|sh|j2|jinja|prompt)$"
)
_PROMPT_FOLDERS = re.compile(r"(^|/)(prompts?|instructions|skills)/")
#: Folders at the top of a repository whose files are not the agent's.
_OTHER_FOLDERS = frozenset(
    {"benchmarks", "doc", "docs", "eval", "evals", "examples", "node_modules", "test", "tests"}
)
#: The variables of keys that code names, and libraries that read a variable that no code names.
_KEY = re.compile(r"\b[A-Z][A-Z0-9_]*_API_KEY\b")
_LIBRARIES = {
    "OPENAI_API_KEY": re.compile(r"^\s*(?:import|from) openai\b|['\"]openai['\"]", re.MULTILINE),
    "ANTHROPIC_API_KEY": re.compile(
        r"^\s*(?:import|from) anthropic\b|['\"]@anthropic-ai/sdk['\"]", re.MULTILINE
    ),
}
#: What shows that a command, or its code, is a client of the suite's MCP server.
_USES_TOOLS = re.compile(r"\{MCP_CONFIG\}|\bAGENTEVALS_MCP_URL\b")
_READ_FILES, _READ_BYTES = 500, 200_000  # of the agent's code

#: What builds an agent, by the file that shows it; the first that exists is used.
_BUILDS = {
    "requirements.txt": "python3 -m pip install -r requirements.txt",
    "pyproject.toml": "python3 -m pip install .",
    "package-lock.json": "npm ci",
    "package.json": "npm install",
}
_IN_CONTAINER = frozenset({"python", "python3", "sh", "bash"})  # programs that the image has
_EXAMPLES = (
    "--command 'python3 agent.py'",
    "--python agent:answer",
    "--url https://agent.example.com/ask",
    "--model gpt-4o-mini",
)
_NO_RUNNERS = (
    "No suites of promptfoo, pytest (deepeval, pydantic-evals), inspect or a plugin of Claude Code "
    "are here"
)
#: The provider of each option, and the field of the target with the option's value. A model's name
#: decides its provider.
_PROVIDERS = {
    "command": ("cli", "command"),
    "python": ("python", "target"),
    "url": ("http", "url"),
    "model": ("openai", "model"),
}
#: The agent for tests of skills: its target, its key, and the commands that install it.
_CLAUDE = {"model": "claude-sonnet-4-5"}
_CLAUDE_KEY = "ANTHROPIC_API_KEY"
_CLAUDE_INSTALL = "npm install -g @anthropic-ai/claude-code"
_CLAUDE_SETUP = f"apt-get update && apt-get install -y nodejs npm && {_CLAUDE_INSTALL}"
_VENDORS = {"claude": "anthropic", "gemini": "gemini"}


@dataclass(frozen=True)
class _Agent:
    """The user's agent as a target: `options` are the fields besides the provider. `keys` are the
    variables of its keys, `prepare` is the command that builds it. It `uses_tools` if it is a
    client of the suite's MCP server. In place of a target, `runners` ask the agent themselves.
    `skills` are the paths of the tests of skills, whose judge is another target; `setup` is the
    command that installs the agent."""

    provider: str
    options: Mapping[str, str | list[str]]
    keys: tuple[str, ...] = ()
    prepare: str = ""
    uses_tools: bool = False
    runners: Sequence[ProposedRunner] = ()
    skills: tuple[str, ...] = ()
    setup: str = ""

    @property
    def passed(self) -> tuple[str, ...]:
        """The variables that a child process must see."""
        is_program = self.skills or self.provider in ("cli", "python")
        return self.keys if self.runners or is_program else ()

    @property
    def on_runner(self) -> bool:
        """Whether the agent needs more than the container has."""
        command = self.options.get("command", "sh")
        program = (command.split() if isinstance(command, str) else command)[0]
        return bool(self.runners or self.prepare) or program not in _IN_CONTAINER


@click.command("init")
@click.option("--command", help="The agent is a command: 'python3 agent.py'.")
@click.option("--python", help="The agent is a function, as Python imports it: agent:answer.")
@click.option("--url", help="The agent is a service: https://agent.example.com/ask.")
@click.option("--model", help="The agent is a model: gpt-4o-mini, claude-sonnet-4-5.")
async def command(**given: str | None) -> int:
    """Write a first suite, its target and the workflow for your agent. Without an option: the
    workflow for the suites of promptfoo, pytest (deepeval, pydantic-evals), inspect and plugins of
    Claude Code that the repository has, or the targets and the workflow for the tests of its
    skills.

    An existing file is never changed. What the agent consists of, and the names of the keys that it
    needs, are found in the repository."""
    repository = await GitRepository.open(Path.cwd(), environ=os.environ)
    root, files = repository.root, (await repository.listing()).files
    options = {name: value for name, value in given.items() if value}
    proposed = propose_runners(root, files)
    agent = _agent(options, root, files, proposed)
    unnamed = {} if agent.runners else unnamed_suites(root, root, files)
    suites = (*find_suites(root, root, (), files).paths, *agent.skills, *unnamed, _SUITE)
    suite = next(iter(suites))
    texts = dict(_texts(agent, suite, root, files))
    for path in texts:
        if not (root / path).parent.resolve().is_relative_to(root):
            raise InvalidInput(
                f"{path} is outside of the repository through a link", "remove the link"
            )
    is_new = {path: _create(root, path, text) for path, text in texts.items()}
    for path, created in is_new.items():
        print(f"{'created' if created else 'kept   '}  {path}")
    for path, text in _missing_parts(agent, root, is_new):
        print(f"\nAdd this to {path}:\n\n{text}", end="")
    if options:
        entries = "".join(f"\n  - {runner.entry}" for runner in proposed)
        proposal = f"Other programs have suites here; for {CONFIGURATION}:\nrunners:{entries}"
        print(f"\n{proposal if proposed else _NO_RUNNERS}")
    print("\nNext:")
    for step in await _next_steps(agent, suite, repository, is_new, unnamed.get(suite)):
        print(f"  {printable(step, 1000)}")
    secrets = "".join(f"Add the secret {key} to the repository. " for key in agent.keys)
    print(f"\n{secrets}Then require the check `agentevals` in the rules of the branch.")
    return ExitCode.PASSED


def _missing_parts(
    agent: _Agent, root: Path, is_new: Mapping[str, bool]
) -> Iterator[tuple[str, str]]:
    """What the user's own files lack, with the path of each file: entries of runners, steps, and a
    target for the tests of skills."""
    context = _context(agent)
    entries = [f"results: {runner.results}" for runner in agent.runners]
    for path, name, marks in (
        (CONFIGURATION, "runners.yaml", entries),
        (_existing_workflow(root) or _WORKFLOW, "steps.yaml", context["commands"]),
    ):
        file = root / path
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        if not is_new[path] and any(mark not in text for mark in marks):
            yield path, _rendered(name, context)
    catalog, settings = Catalog(environ=os.environ), read_configuration(root).content.skills
    folders = [Folder(root, (root / path).parent) for path in agent.skills if not settings]
    if blind := next((place for place in folders if not catalog.works_with_skills(place)), None):
        targets = catalog.find_targets(blind)
        name = "skills" if "default" in targets.entries else "default"
        yield targets.path or _TARGETS, _rendered("targets.yaml", {**context, "name": name})
        if name != "default":
            yield CONFIGURATION, f"skills: {{target: {name}}}\n"


def _agent(
    given: Mapping[str, str],
    root: Path,
    files: Sequence[str],
    runners: Sequence[ProposedRunner],
) -> _Agent:
    skills = find_skill_suites(root, root, files, (), SkillSettings(), lambda _: True).paths
    if not given and (skills or runners):
        of_runners = (key for runner in runners for key in runner.env)
        keys = tuple(dict.fromkeys([*of_runners, *([_CLAUDE_KEY] if skills else [])]))
        if not skills:
            return _Agent("", {}, keys, runners=runners)
        return _Agent(
            "claude-cli", _CLAUDE, keys, runners=runners, skills=skills, setup=_CLAUDE_SETUP
        )
    if len(given) != 1:
        problem = "specify one agent" if given else f"{_NO_RUNNERS}, and the agent is missing"
        raise InvalidInput(
            problem, f"write {joined([f'`{example}`' for example in _EXAMPLES], 'or')}"
        )
    ((option, value),) = given.items()
    provider, field = _PROVIDERS[option]
    options: dict[str, str | list[str]] = {field: value}
    keys = ()
    build, uses_tools = "", False
    if option == "model":
        vendors = (vendor for start, vendor in _VENDORS.items() if value.startswith(start))
        provider = next(vendors, provider)
        keys = (PROVIDERS[provider].key_variable,)
        options["api_key"] = f"${{{{ {keys[0]} }}}}"
    elif option != "url":
        options["cwd"] = f"/{Path.cwd().resolve().relative_to(root).as_posix()}".rstrip(".")
        code = [*_read_code(root, files)]
        keys = tuple(dict.fromkeys(key for text in code for key in _keys(text)))
        uses_tools = any(_USES_TOOLS.search(text) for text in (value, *code))
        build = next((build for name, build in _BUILDS.items() if (root / name).is_file()), "")
    try:
        definition = {"name": "default", "provider": provider, **options}
        PROVIDERS[provider].model_validate(definition, context=Folder(root, root))
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        raise InvalidInput(f"{value!r} is not a valid agent: {reason}", "fix the option") from None
    if skills and option == "command":  # it finds the skill in the folder of its test
        del options["cwd"]
        options[option] = _from_suites(value, [(root / path).parent for path in skills])
        keys = tuple(dict.fromkeys((*keys, _CLAUDE_KEY)))
        return _Agent(provider, options, keys, build, skills=skills)
    return _Agent(provider, options, keys, build, uses_tools)


def _from_suites(command: str, folders: Sequence[Path]) -> str | list[str]:
    """A command that runs in the folder of a test, with its files relative to that folder."""
    names = {word for word in command.split() if Path(word).is_file()}
    ways = {
        tuple(os.path.relpath(word, folder) if word in names else word for word in command.split())
        for folder in folders
    }
    if names and len(ways) > 1:
        problem = f"{command!r} runs in a folder of its own for each test of a skill"
        raise InvalidInput(problem, "name a program that is on the PATH, or an absolute path")
    return list(ways.pop()) if names else command


def _watched(files: Sequence[str]) -> Iterator[str]:
    """Globs of the agent's code and prompts: folders at the top, and types of files there."""
    for path in files:
        top, *below = PurePosixPath(path).parts
        if top in _OTHER_FOLDERS or top.startswith("."):
            continue
        if _CODE.search(path):
            yield f"{top}/**" if below else f"*{PurePosixPath(path).suffix}"
        elif _PROMPT_FOLDERS.search(path):
            yield f"{top}/**"


def _read_code(root: Path, files: Sequence[str]) -> Iterator[str]:
    """The texts of the agent's code."""
    code = [path for path in files if _CODE.search(path) and next(_watched([path]), None)]
    for path in code[:_READ_FILES]:
        file = root / path
        if file.is_file() and file.resolve().is_relative_to(root):
            with file.open("rb") as opened:
                yield opened.read(_READ_BYTES).decode("utf-8", "replace")


def _keys(text: str) -> Iterator[str]:
    """The names of the keys in a file of code."""
    yield from (name for name in _KEY.findall(text) if not is_never_passed(name))
    yield from (name for name, library in _LIBRARIES.items() if library.search(text))


def _texts(
    agent: _Agent, suite: str, root: Path, files: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The files to create. A repository with a suite or a workflow of its own keeps it."""
    context = _context(agent, files)
    if not agent.runners and not agent.skills:
        yield suite, _rendered("EVAL.yaml", context)
    if not agent.runners or agent.skills:
        yield _TARGETS, _rendered("targets.yaml", context)
    yield CONFIGURATION, _rendered("agentevals.yaml", context)
    yield _existing_workflow(root) or _WORKFLOW, _rendered("workflow.yaml", context)
    caches = ["__pycache__/"] if any(path.endswith(".py") for path in files) else []
    yield _RULES, "".join(f"{pattern}\n" for pattern in (*_IGNORED, *caches))


def _context(agent: _Agent, files: Sequence[str] = ()) -> Mapping[str, Any]:
    """The variables of the templates."""
    install = [_CLAUDE_INSTALL] if agent.setup and agent.on_runner else []
    return {
        **vars(agent),
        "name": "default",
        "commands": [*(runner.install for runner in agent.runners), *install],
        # JSON is YAML, whatever characters the user's texts have.
        "options": [(name, _quoted(text)) for name, text in agent.options.items()],
        "watch": [_quoted(glob) for glob in dict.fromkeys(_watched(files)) if not agent.skills],
        "passed": agent.passed,
        "on_runner": agent.on_runner,
    }


def _rendered(name: str, context: Mapping[str, Any]) -> str:
    return templating.render_file(f"init/{name}.j2", context)


def _quoted(text: str | list[str]) -> str:
    return json.dumps(text, ensure_ascii=False)


def _existing_workflow(root: Path) -> str | None:
    """The workflow that runs the action, None without one."""
    for file in sorted((root / ".github/workflows").glob("*.y*ml")):
        if "agentevals-action" in file.read_text(encoding="utf-8", errors="replace"):
            return file.relative_to(root).as_posix()
    return None


def _create(root: Path, path: str, text: str) -> bool:
    """Creates a file; False if a file or a link exists there."""
    file = root / path
    with output_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with file.open("x", encoding="utf-8", newline="\n") as opened:
                opened.write(text)
        except FileExistsError:
            return False
    return True


async def _next_steps(
    agent: _Agent,
    suite: str,
    repository: GitRepository,
    is_new: Mapping[str, bool],
    named: str | None,
) -> Sequence[str]:
    """Commands for the user; `named` is the new path of a suite that no pattern names. `git add
    --all` would add the keys in a `.env` file."""
    lets_through = f" --env {','.join(agent.passed)}" if agent.passed else ""
    steps = []
    for pattern, path in _IGNORED.items():
        if not await repository.ignores(repository.root / path):
            steps.append(f"echo {pattern} >> {_RULES}")
    added = [path for path, created in is_new.items() if created]
    if named:
        steps.append(f"mv {shlex.join([suite, named])}  # a suite is found by its name")
        added.append(named)
    steps += [runner.install for runner in agent.runners if not shutil.which(runner.name)]
    steps += [_CLAUDE_INSTALL] if agent.setup and not shutil.which("claude") else []
    steps += [f"export {key}=…" for key in agent.keys if key not in os.environ]
    if not await repository.untracked("**/.env"):
        added = ["--all"]
    steps.append(f"agentevals-action run{lets_through}  # the suite as it is")
    if added:
        steps.append(f"git add {shlex.join(added)} && git commit -m 'Add evals'")
    review = f"agentevals-action review --base HEAD{lets_through}"
    return [*steps, f"{review}  # after a change of the agent"]
