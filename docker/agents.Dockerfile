# The command, for agents and watchdog. Build from the project's root: docker build -f docker/agents.Dockerfile .
FROM python:3.11-slim-bookworm AS wheel
WORKDIR /src
COPY . .
RUN pip wheel --no-deps --wheel-dir /wheels .

FROM python:3.11-slim-bookworm
# The namespace package must come from the wheel, never from the working directory.
ENV PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1
COPY requirements.lock /tmp/requirements.lock
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir --require-hashes -r /tmp/requirements.lock \
 && pip install --no-cache-dir --no-deps /wheels/*.whl \
 && useradd --create-home shardmerge \
 && mkdir /data && chown shardmerge /data
USER shardmerge
VOLUME /data
EXPOSE 6066
ENTRYPOINT ["shardmerge"]
CMD ["agents", "--pipeline", "/etc/shardmerge/pipeline.toml", "--datadir", "/data", "--web-host", "0.0.0.0", "--web-port", "6066"]
