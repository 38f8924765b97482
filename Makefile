# What `.ci/run` runs in a virtual environment of its own; here in the one that is active.
TESTS ?= tests

.PHONY: test lint slow properties docs container
test:
	python3 -m pytest $(TESTS)
lint:
	ruff check .
	ruff format --check .
	mypy --strict
slow:
	python3 -m pytest -m slow $(TESTS)
properties:
	python3 -m pytest -m hypothesis --hypothesis-profile thorough
docs:
	python3 docs/generate.py
	mkdocs build --strict --site-dir .ci/site
	codespell *.md docs tests/README.md
container:
	python3 -m pytest -m container -n 0
