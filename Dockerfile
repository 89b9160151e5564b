# syntax=docker/dockerfile:1
# One image for the three programs: `docker run clusterwright agent|bot|reconciler`.
# A release gives both arguments as digests.
ARG BUILD_IMAGE=python:3.13-slim-trixie
ARG RUN_IMAGE=python:3.13-slim-trixie

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
COPY requirements/build.lock requirements/runtime.lock requirements/
RUN pip install --require-hashes --no-deps -r requirements/build.lock \
    && python -m venv --without-pip /opt/venv \
    && uv pip install --no-cache --python /opt/venv --require-hashes --no-deps --compile-bytecode \
        -r requirements/runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY checks checks
COPY reconciler reconciler
COPY bot bot
COPY manifests manifests
# The Kubernetes client carries every model twice; the asynchronous half, 68 MB, is not imported here.
RUN python -m hatchling build --target wheel --directory /tmp/wheel \
    && uv pip install --no-cache --python /opt/venv --no-deps --compile-bytecode /tmp/wheel/*.whl \
    && rm -rf /opt/venv/lib/python3.*/site-packages/kubernetes/aio

FROM ${RUN_IMAGE} AS program
# The git of the distribution, whose security fixes come with each rebuild; Debian keeps no older version to pin.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["clusterwright"]

# For a bot that asks Slurm: `docker build --target slurm`. A controller takes clients of its own release and of a few
# before; Debian 13 has 24.11.
FROM program AS slurm
USER 0:0
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends munge sackd slurm-client \
    && rm -rf /etc/munge/munge.key /var/lib/apt/lists/*
USER 65532:65532

FROM program
