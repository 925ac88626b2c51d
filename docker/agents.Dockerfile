# The command, for agents and watchdog. Build from the project's root: docker build -f docker/agents.Dockerfile .
#
# PYTHON_IMAGE, PYTHON_DIGEST: the base image, and the digest that pins it, as sha256:… ("" takes the tag as it is).
# VERSION, REVISION: what the labels say: the release and the commit.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG PYTHON_DIGEST=""
FROM ${PYTHON_IMAGE}${PYTHON_DIGEST:+@${PYTHON_DIGEST}} AS wheel
WORKDIR /src
COPY . .
RUN pip wheel --no-deps --wheel-dir /wheels .

FROM ${PYTHON_IMAGE}${PYTHON_DIGEST:+@${PYTHON_DIGEST}}
ARG PYTHON_IMAGE
ARG PYTHON_DIGEST
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="shardmerge" \
      org.opencontainers.image.description="Agents and watchdog of shardmerge" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${PYTHON_IMAGE}" \
      org.opencontainers.image.base.digest="${PYTHON_DIGEST}"
# The namespace package must come from the wheel, never from the working directory.
ENV PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1
COPY requirements.lock /tmp/requirements.lock
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir --require-hashes -r /tmp/requirements.lock \
 && pip install --no-cache-dir --no-deps /wheels/*.whl \
 && useradd --create-home --uid 10001 shardmerge \
 && mkdir /data && chown shardmerge /data
# By number: Kubernetes cannot see that a name is not root's (runAsNonRoot).
USER 10001
VOLUME /data
EXPOSE 6066
# Another part of this image serves elsewhere: see the watchdog in docker/compose.yaml.
ENV HEALTH_URL=http://127.0.0.1:6066/healthz
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(os.environ['HEALTH_URL'], timeout=4)"]
ENTRYPOINT ["shardmerge"]
CMD ["agents", "--pipeline", "/etc/shardmerge/pipeline.toml", "--datadir", "/data", "--web-host", "0.0.0.0", "--web-port", "6066"]
