"""README and docs agree with the code: the reference is what the code generates, the examples are
valid, the commands run, the links lead somewhere."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentevals_action import evaluators, settings
from agentevals_action.model.comparison import Outcome
from agentevals_action.model.judge import Label
from agentevals_action.model.messages import Block
from agentevals_action.model.suite import Suite, Test
from agentevals_action.runners.commands import find_problems
from agentevals_action.suites.configuration_file import read_configuration, read_quarantines
from agentevals_action.suites.load import load_suite
from agentevals_action.suites.reading import EVALUATOR_LISTS
from agentevals_action.suites.target_use import Catalog
from agentevals_action.validation.file_model import list_fields
from docs import generate
from tests.support import command
from tests.support.repositories import ENVIRONMENT, Files, Repository
from tests.support.stand_in import Received, Sent, StandIn
from tests.support.trends import store

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "agentevals_action"
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        *sorted(ROOT.glob("*.md")),
        ROOT / "examples/README.md",
        *sorted(DOCS.rglob("*.md")),
    )
}
COMPATIBILITY = PAGES["docs/compatibility.md"]
#: The longest pages, in words.
MOST_WORDS = {"docs/reference/": 2_500, "": 1_500}
MOST_README_LINES = 250
MOST_CHARACTERS = 120  # of a line that is no row of a table and no code
#: Words that the glossary replaces.
FORBIDDEN = re.compile(
    r"\b(evalcase|scorer|flakey|flakiness|datapoint|untold|faults)\b", re.IGNORECASE
)


def blocks(*languages: str) -> list[Any]:
    """The code blocks of all pages in one of the languages, as parameters with readable ids."""
    found: dict[str, str] = {}
    for page, text in PAGES.items():
        for language, block in re.findall(r"^ *```(\w+)\n(.*?)^ *```", text, re.M | re.S):
            if language in languages:
                found.setdefault(textwrap.dedent(block), page)
    return [
        pytest.param(block, id=f"{page}-{block.partition(chr(10))[0][:30]}")
        for block, page in found.items()
    ]


TARGETS = """\
- {name: default, provider: cli, command: [cat], judge_target: judge}
- {name: haiku, extends: default}
- {name: long-prompt, extends: default}
- {name: judge, provider: mock, responses: [{pattern: '.*', response: x}]}
- {name: gpt, extends: judge}
- {name: gemini, extends: judge}
"""
#: What the project's own check and its reader run, not its tests: they install, and the second is
#: the tests themselves.
INSTALLING = ("python3 -m pip install",)


def commands() -> list[str]:
    lines = [
        line.split("#")[0].strip()
        for parameter in blocks("sh")
        for block in parameter.values
        if not block.startswith(("git init", "eval"))
        for line in block.splitlines()
    ]
    return [line for line in dict.fromkeys(lines) if line and not line.startswith(INSTALLING)]


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = re.sub(r"^ *```.*?^ *```", "", PAGES[page], flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", prose, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links__lead_to_a_page_and_an_anchor(page: str) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", PAGES[page], flags=re.M | re.S)
    ours = "https://github.com/org/agentevals-action/blob/main/"
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        path, _, anchor = link.partition("#")
        if path.startswith(ours):
            target = ROOT / path.removeprefix(ours)
        elif "://" in path:
            continue
        else:
            target = (ROOT / page).parent / path if path else ROOT / page
        name = os.path.relpath(target, ROOT)
        if not target.is_file() or (anchor and anchor not in anchors(name)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_pages__are_short_and_in_the_words_of_the_glossary(page: str) -> None:
    limit = next(most for start, most in MOST_WORDS.items() if page.startswith(start))
    assert len(PAGES[page].split()) <= limit
    code = re.compile(r"^ *```.*?^ *```", re.M | re.S)
    prose = code.sub("", PAGES[page])
    lines = [line for line in prose.splitlines() if not line.startswith(("|", "!["))]
    assert [line for line in lines if len(line) > MOST_CHARACTERS] == []
    # The field of another program has its own name.
    assert FORBIDDEN.findall(re.sub("`[^`]*`", "", prose)) == []


def test_readme__is_short() -> None:
    assert len(PAGES["README.md"].splitlines()) <= MOST_README_LINES


@pytest.mark.parametrize("page", [page for page in PAGES if "<!-- generated" in PAGES[page]])
def test_reference__is_as_generated(page: str) -> None:
    """`python docs/generate.py` writes it."""
    assert generate.complete(PAGES[page]) == PAGES[page]


def test_reference__every_generated_part_is_on_a_page() -> None:
    parts = re.findall("<!-- generated: (.+?) -->", "".join(PAGES.values()))
    assert sorted(parts) == sorted(generate.PARTS)


def test_navigation__has_every_page() -> None:
    content = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)
    listed = re.findall(r"[\w/-]+\.md", str(content["nav"]))
    pages = [page for page in PAGES if page.startswith("docs/")]
    assert sorted(f"docs/{name}" for name in listed) == sorted(pages)


def test_troubleshooting__quotes_the_messages_of_the_code() -> None:
    """A bold text that begins with a small letter or with code is a message, `…` any part of it."""
    modules = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")]
    nodes = [node for module in modules for node in ast.walk(module)]
    messages = "\n".join(str(node.value) for node in nodes if isinstance(node, ast.Constant))
    quoted = re.findall(r"^\*\*([a-z`].*?)\*\*", PAGES["docs/troubleshooting.md"], re.M | re.S)
    assert len(quoted) > 20
    headings = re.findall(r"^## (\w+)$", PAGES["docs/troubleshooting.md"], re.M)
    assert {outcome for outcome in Outcome if outcome not in headings} == {Outcome.PASSED}
    for message in quoted:
        parts = re.split(r"`?…`?|`\$\{\{ NAME \}\}`", " ".join(message.split()))
        assert [part for part in parts if part.strip(" .:;`") not in messages] == [], message


def test_contributing__names_files_that_exist() -> None:
    pages = PAGES["ARCHITECTURE.md"] + PAGES["docs/contributing.md"]
    named = re.findall(r"`([\w./]+(?:\.py|\.j2|/))`", pages)
    assert len(named) > 40
    inside = {name for name in named if any(SOURCE.rglob(name.rstrip("/")))}
    assert [name for name in named if name not in inside and not (ROOT / name).exists()] == []


@pytest.mark.parametrize("block", blocks("json"))
def test_json__each_block_is_valid(block: str) -> None:
    json.loads(block)


def test_evaluators__each_has_an_example() -> None:
    assert list(generate.examples()) == list(evaluators.EVALUATORS)


@pytest.mark.parametrize("name", evaluators.EVALUATORS)
def test_evaluators__each_example_is_valid(name: str, tmp_path: Path) -> None:
    test = {
        "id": "a",
        "input": "q",
        "expected_output": {"order": "2077", "total": 3.5},
        "assert": [
            {"type": "contains", "value": "2077", "name": "scores"},  # `pairwise` does not
            {"type": name, **generate.examples()[name]},
        ],
    }
    (tmp_path / "EVAL.yaml").write_text(yaml.safe_dump({"name": "suite", "tests": [test]}))
    check_suite(tmp_path)


def spellings() -> set[tuple[str, str]]:
    """Every name of the model with each other spelling of it."""
    models = (Suite, Test, Block, *evaluators.EVALUATORS.values())
    found = {
        (name, other)
        for model in models
        for name, own in list_fields(model).items()
        for other in own[1:]
        if name != "evaluators"
    }
    found |= {
        (name, alias)
        for name in evaluators.EVALUATORS
        for alias in evaluators.EVALUATORS.spellings(name)[1:]
    }
    return found | {
        ("outcome", "expected_outcome"),
        ("judge_target", "grader_target"),
        *(("assert", name) for name in EVALUATOR_LISTS),
    }


def dialect_lines() -> list[set[str]]:
    """The names in each row of the table of dialects, and in each clause of the sentence after it,
    with `_` for `-`."""
    section = COMPATIBILITY[COMPATIBILITY.index("| | AgentEvals today |") :]
    table, _, after = section.partition("\n\n")
    parts = [*table.splitlines()[2:], after.replace("\n", " ").split(" A feature")[0]]
    return [{name.replace("-", "_") for name in re.findall(r"`([^`]+)`", part)} for part in parts]


def test_dialects__every_spelling_is_listed_with_its_name() -> None:
    lines = dialect_lines()
    assert [
        pair for pair in sorted(spellings()) if not any(set(pair) <= line for line in lines)
    ] == []


#: The files of other systems by their first lines, with the schemas that check-jsonschema has.
OF_OTHERS = {
    "# .gitlab-ci.yml": "vendor.gitlab-ci",
    "# azure-pipelines.yml": "vendor.azure-pipelines",
    "# .buildkite/pipeline.yml": "vendor.buildkite",
}


def check_file_of_other_system(block: str, file: Path) -> None:
    assert "agentevals-action review --base" in block
    # These systems take every value as a text, and so do their schemas.
    file.write_text(json.dumps(yaml.load(block, yaml.BaseLoader)))
    schema = ("--builtin-schema", OF_OTHERS[block.partition("\n")[0]])
    words = ("check-jsonschema", "--regex-variant", "nonunicode", *schema, str(file))
    checked = subprocess.run(words, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def check_steps(steps: list[dict[str, Any]]) -> None:
    ours = [step for step in steps if step.get("uses", "").startswith("org/agentevals-action")]
    assert ours
    for step in ours:
        assert set(step.get("with", {})) <= set(settings.INPUTS)
        assert set(step) <= {"uses", "with", "env", "id"}
    described = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["outputs"]
    for step in ours:
        used = re.findall(rf"steps\.{step.get('id', '-')}\.outputs\.([\w-]+)", str(steps))
        assert set(used) <= set(described)


def check_call(job: dict[str, Any]) -> None:
    """A call of our own workflow, or of one on a page, with what it takes and its jobs may need."""
    repository, _, name = job["uses"].partition("@")[0].partition("/.github/workflows/")
    if repository == "org/agentevals-action":
        called = yaml.safe_load((ROOT / ".github/workflows" / name).read_text(encoding="utf-8"))
    else:
        called = yaml.safe_load(workflows()[name])
    taken = called[True]["workflow_call"]  # YAML 1.1 reads `on` as a boolean
    assert set(job["with"]) <= set(taken["inputs"])
    assert set(job["secrets"]) <= set(taken["secrets"])
    needed = {
        scope
        for called_job in called["jobs"].values()
        for scope in called_job["permissions"].items()
    }
    written = {scope for scope, level in needed if level == "write"}
    assert set(job["permissions"]) == {scope for scope, _ in needed}
    assert all(job["permissions"][scope] == "write" for scope in written)


def check_suite(root: Path) -> None:
    (root / "project").mkdir()
    shutil.copytree(ROOT / "examples/skills/base/skills", root / "skills")
    if not (root / ".agentv").exists():
        (root / ".agentv").mkdir()
        (root / ".agentv/targets.yaml").write_text(TARGETS)
    path = root / "EVAL.yaml"
    if "skills: [..]" in path.read_text():
        path = path.rename(root / "skills/release-notes/evals/EVAL.yaml")
    suite = load_suite(path, root, Catalog())
    assert not getattr(suite, "errors", ())
    assert not getattr(suite, "warnings", ())


@pytest.mark.parametrize("block", blocks("yaml"))
def test_yaml__each_block_is_valid_as_a_user_s_file(block: str, tmp_path: Path) -> None:
    data = yaml.safe_load(block)
    if block.startswith(tuple(OF_OTHERS)):
        check_file_of_other_system(block, tmp_path / "file.json")
    elif "labels.yaml" in block.partition("\n")[0]:
        assert [Label.model_validate(entry) for entry in data]
    elif isinstance(data, list):
        check_steps(data)
    elif data is None:
        assert block.startswith("# yaml-language-server: $schema=")
    elif "type" in data:
        assert generate.examples()[data.pop("type")] == data
    elif "jobs" in data:
        (job,) = data["jobs"].values()
        if "uses" in job:
            check_call(job)
        else:
            check_steps(job["steps"])
    elif "permissions" in data:  # a part of a workflow
        assert "steps as above" in block
    elif "tests" in data:
        (tmp_path / "EVAL.yaml").write_text(block)
        check_suite(tmp_path)
    elif "runners" in data:
        (tmp_path / ".agentevals.yaml").write_text(block)
        configuration = read_configuration(tmp_path)
        assert (configuration.errors, configuration.warnings) == ((), ())
        problems = [list(find_problems(each)) for each in configuration.content.runners or ()]
        assert not any(problems)
    elif "targets" in data:
        (tmp_path / ".agentv").mkdir()
        (tmp_path / ".agentv/targets.yaml").write_text(block)
        tests = [
            {"id": f"t{number}", "input": "q", "execution": {"target": target["name"]}}
            for number, target in enumerate(data["targets"])
        ]
        suite = {"name": "suite", "assert": [{"type": "equals", "value": "x"}], "tests": tests}
        (tmp_path / "EVAL.yaml").write_text(yaml.safe_dump(suite))
        check_suite(tmp_path)
    else:
        (tmp_path / ".agentevals.yaml").write_text(block)
        configuration = read_configuration(tmp_path)
        read = read_quarantines(configuration, date(2026, 1, 1))
        assert (read.errors, read.warnings) == ((), ())
        content = configuration.content
        assert read.head or content.watch or content.skills


def workflows() -> dict[str, str]:
    """The complete workflows of the pages, by their file names; further ones of a name have a
    number."""
    found: dict[str, str] = {}
    for parameter in blocks("yaml"):
        for block in parameter.values:
            if "\njobs:\n" in block and "steps as above" not in block:
                path = block.partition("\n")[0].partition(".github/workflows/")[2]
                name = path.split(":")[0] or "sharded-evals.yml"
                found[f"{len(found)}-{name}" if name in found else name] = block
    return found


def test_workflows__are_valid_and_zizmor_finds_only_tags_and_versions(tmp_path: Path) -> None:
    """The examples name tags, and a package by its version, which can be read better;
    SECURITY.md has a commit."""
    paths = []
    for name, block in workflows().items():
        path = tmp_path / name
        path.write_text(block)
        paths.append(str(path))
    assert len(paths) == 10
    schema = ("check-jsonschema", "--builtin-schema", "vendor.github-workflows")
    checked = subprocess.run([*schema, *paths], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    zizmor = ("zizmor", "--offline", "--no-progress", "--format=json")
    done = subprocess.run([*zizmor, *paths], capture_output=True, text=True, check=False)
    assert {finding["ident"] for finding in json.loads(done.stdout)} <= {
        "adhoc-packages",
        "unpinned-uses",
    }, done.stdout


def example(page: str, language: str, start: str = "") -> str:
    """The one code block of a page that begins so."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.M | re.S)
    (block,) = (block for block in found if block.startswith(start))
    return str(block)


class Webhook(StandIn[Received, Sent]):
    """Takes what is posted, as Slack's incoming webhooks do."""

    def reply(self, received: Received) -> Sent:
        return Sent(b"ok")


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="no jq or curl")
def test_slack__the_step_posts_the_message_of_the_page() -> None:
    page = "docs/guides/red-main.md"
    step = yaml.safe_load(example(page, "yaml", "- uses"))[1]
    facts = {
        "github.repository": "acme/shop",
        "steps.evals.outputs.outcome || 'did not run'": "failed",
        "steps.evals.outputs.failed": "1",
        "steps.evals.outputs.errored": "0",
        "steps.evals.outputs.regressions": "1",
        "steps.evals.outputs.check-run-url": "https://github.com/acme/shop/runs/1",
    }
    text = re.sub(r"\$\{\{ (.+?) \}\}", lambda found: facts[found[1]], step["env"]["TEXT"])
    with Webhook() as server:
        environment = {**os.environ, "TEXT": text, "WEBHOOK": server.url}
        subprocess.run(["bash", "-e", "-c", step["run"]], env=environment, check=True)
    (request,) = server.requests
    assert request.body == json.loads(example(page, "json"))
    assert request.headers["content-type"] == "application/json"


#: Two models of which one is worse, and the suite of the page.
TWO_MODELS: Files = {
    ".agentv/targets.yaml": """\
targets:
  - name: default
    provider: mock
    responses: [{pattern: return, response: 30 days.}, {pattern: '', response: Hello!}]
  - name: claude
    provider: mock
    responses: [{pattern: return, response: Two weeks.}, {pattern: '', response: Hello!}]
""",
    "evals/EVAL.yaml": """\
name: support
tests:
  - id: refund-window
    input: Can I return shoes after three weeks?
    assert:
      - {type: contains, value: 30 days, required: true}
  - id: greeting
    input: Hello
    assert:
      - {type: contains, value: Hello}
  - id: no-invention
    input: Do you ship to the moon?
    assert:
      - {type: contains, value: cannot}
""",
}


@pytest.mark.slow
def test_two_models__the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    page = "docs/guides/models.md"
    repository = Repository.create(tmp_path, TWO_MODELS)
    runs = [
        command.run(repository.path, *shlex.split(line)[1:])
        for line in example(page, "bash", "agentevals-action").splitlines()
    ]
    # A test of the suite fails with both models, so that both runs do.
    assert [done.code for done in runs] == [1, 1, 1, 0]
    time = re.compile(r"\d+\.\d s$", re.M)
    assert time.sub("", runs[2].out) == time.sub("", example(page, "text"))
    assert (tmp_path / "models.html").is_file()


@pytest.mark.parametrize(
    ("association", "group"),
    [
        *((role, "evals-7") for role in ("OWNER", "MEMBER", "COLLABORATOR")),
        *((role, "evals-900") for role in ("CONTRIBUTOR", "FIRST_TIME_CONTRIBUTOR", "NONE")),
    ],
)
def test_requested_run__no_stranger_is_in_the_group_of_a_maintainer(
    association: str, group: str
) -> None:
    """Attack: a stranger comments the command, and GitHub cancels the waiting run of the same
    group, which a maintainer requested."""
    job = yaml.safe_load(workflows()["evals-on-request.yml"])["jobs"]["evals"]
    expression = re.fullmatch(
        r"evals-\$\{\{ contains\(fromJSON\('(.+)'\), github\.event\.comment\.author_association\) "
        r"&& github\.event\.issue\.number \|\| github\.run_id \}\}",
        job["concurrency"]["group"],
    )
    assert expression
    assert "cancel-in-progress" not in job["concurrency"]
    assert group == f"evals-{7 if association in json.loads(expression[1]) else 900}"


@pytest.mark.slow
def test_first_minutes__the_commands_lead_to_a_red_review(tmp_path: Path) -> None:
    (script,) = (value for block in blocks("sh") for value in block.values if "git init" in value)
    environment = {
        **ENVIRONMENT,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GIT_CONFIG_COUNT": "0",
    }
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert "created  evals/EVAL.yaml" in done.stdout
    assert "1 test regressed and failed a required gate" in done.stdout


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's pull request as a working tree, with the results of one run and of the default
    branch."""
    repository = Repository.create(tmp_path_factory.mktemp("reviewed") / "repository")
    steps = ROOT / "examples" / "demo"
    shutil.copytree(steps / "base", repository.path, dirs_exist_ok=True)
    repository.commit("base")
    store(repository, 2)
    repository.git("remote", "add", "origin", str(repository.path))
    repository.git("checkout", "--quiet", "-b", "change")
    repository.git("apply", str(steps / "red.patch"))
    repository.commit("head")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["agentevals-action", "review", "--base", "main"],
        cwd=repository.path,
        env=environment,
        capture_output=True,
    )
    assert done.returncode == 1, done.stderr.decode()
    return repository.path


@pytest.fixture
def checkout(reviewed: Path, tmp_path: Path) -> Path:
    """A copy of it, for one command to do with as it likes."""
    return shutil.copytree(reviewed, tmp_path / "repository", symlinks=True)


@pytest.mark.slow
@pytest.mark.parametrize("line", commands())
def test_commands__each_runs(line: str, checkout: Path) -> None:
    words = shlex.split(line)
    if words[:2] in (["python3", "-m"], ["bash", ".ci/run"]):
        pytest.skip("it is the project's own check")
    assert words[0] == "agentevals-action"
    environment = {**os.environ, "PATH": command.PATH, "BROWSER": "true"}
    done = command.finish(checkout, words[1:], environment, timeout=110)
    # The demo's pull request fails its gate, so 1 is the right answer of what runs it; 2 and over
    # would be a command that is wrong.
    assert done.code in (0, 1), done.err
    assert done.out.strip()
