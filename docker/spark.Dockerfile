# The Spark sink's driver (and, with --master local[N], its executors).
# Build from the project's root: docker build -f docker/spark.Dockerfile .
FROM python:3.11-slim-bookworm AS wheel
WORKDIR /src
COPY . .
RUN pip wheel --no-deps --wheel-dir /wheels .

FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
ENV PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1 PYSPARK_PYTHON=python3
COPY requirements.lock /tmp/requirements.lock
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir --require-hashes -r /tmp/requirements.lock \
 && pip install --no-cache-dir --no-deps /wheels/*.whl \
 && useradd --create-home shardmerge
USER shardmerge
ENTRYPOINT ["shardmerge"]
CMD ["sink", "--pipeline", "/etc/shardmerge/pipeline.toml", "--master", "local[2]"]
