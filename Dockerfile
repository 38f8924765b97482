# The action's image. A release takes the base of .ci/base/Dockerfile, by digest.
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements.txt requirements-build.txt /build/
RUN python -m venv --without-pip /opt/agentevals \
    && python -m pip --python /opt/agentevals/bin/python install --no-deps --only-binary :all: --require-hashes -r /build/requirements.txt \
    && python -m pip install --no-deps --require-hashes -r /build/requirements-build.txt
COPY pyproject.toml README.md LICENSE /build/
COPY src /build/src
COPY templates /build/templates
COPY examples /build/examples
COPY schemas /build/schemas
RUN python -m pip wheel --no-build-isolation --no-deps --no-index --wheel-dir /build/dist /build \
    && python -m pip --python /opt/agentevals/bin/python install --no-deps --no-index /build/dist/*.whl \
    && python -m pip --python /opt/agentevals/bin/python check

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="agentevals-action" \
      org.opencontainers.image.description="The merge gate for AI agents: EVAL.yaml suites on every pull request, compared with the base branch" \
      org.opencontainers.image.source="https://github.com/org/agentevals-action" \
      org.opencontainers.image.licenses="MIT"
# Debian keeps one version of a package: a pinned one would break the build on the day of the next security fix.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt \
    && for user in head:60801 base:60802 judge:60803; do \
         useradd --uid "${user#*:}" --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "agentevals-${user%:*}"; \
       done
# The users of the programs of a pull request (system/isolation.py).
ENV AGENTEVALS_IMAGE=1
# A separate environment: packages that suites install for their judges (`prepare`) do not change the action's libraries, nor the reverse.
COPY --from=build /opt/agentevals /opt/agentevals
# The base image has the standard library as source alone: each step would compile what the action imports (0.6 s).
RUN ln -s /opt/agentevals/bin/agentevals-action /usr/local/bin/agentevals-action \
    && agentevals-action action --help >/dev/null
# -I: neither the workspace, which is the working directory, nor PYTHON… variables of the workflow can replace modules.
# The action is the first process, and hides its environment: root programs (`setup`) could read that of any other one.
ENTRYPOINT ["/opt/agentevals/bin/python", "-I", "-m", "agentevals_action", "action"]
