# The Spark sink's driver (and, with --master local[N], its executors).
# Build from the project's root: docker build -f docker/spark.Dockerfile .
# For Kubeflow's Spark operator, which starts driver and executors itself: --target operator
#
# SPARK_IMAGE, SPARK_DIGEST: Spark's own image, for its entry point only.
# PYTHON_IMAGE, PYTHON_DIGEST: the base image, and the digest that pins it, as sha256:… ("" takes the tag as it is).
# VERSION, REVISION: what the labels say: the release and the commit.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG PYTHON_DIGEST=""
ARG SPARK_IMAGE=apache/spark:4.1.4-python3
ARG SPARK_DIGEST=""
FROM ${SPARK_IMAGE}${SPARK_DIGEST:+@${SPARK_DIGEST}} AS entry

FROM ${PYTHON_IMAGE}${PYTHON_DIGEST:+@${PYTHON_DIGEST}} AS wheel
WORKDIR /src
COPY . .
RUN pip wheel --no-deps --wheel-dir /wheels .

FROM ${PYTHON_IMAGE}${PYTHON_DIGEST:+@${PYTHON_DIGEST}} AS installed
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
ENV PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1 PYSPARK_PYTHON=python3
COPY requirements.lock /tmp/requirements.lock
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir --require-hashes -r /tmp/requirements.lock \
 && pip install --no-cache-dir --no-deps /wheels/*.whl \
 && useradd --create-home --uid 10001 shardmerge

FROM installed AS operator
ARG PYTHON_IMAGE
ARG PYTHON_DIGEST
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="shardmerge-sink" \
      org.opencontainers.image.description="Spark sink of shardmerge, for the Spark operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${PYTHON_IMAGE}" \
      org.opencontainers.image.base.digest="${PYTHON_DIGEST}"
USER 0
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/* \
 && mkdir --parents /opt/shardmerge /opt/spark/work-dir \
 && ln -s "$(python -c 'import pyspark, os; print(os.path.dirname(pyspark.__file__))')" /opt/spark/home \
 && ln -s "$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")" /opt/java \
 && printf 'import sys\nfrom shardmerge.spark_sink.job import main\nsys.exit(main())\n' > /opt/shardmerge/sink.py
COPY --from=entry /opt/entrypoint.sh /opt/entrypoint.sh
ENV SPARK_HOME=/opt/spark/home JAVA_HOME=/opt/java
WORKDIR /opt/spark/work-dir
# There is no HEALTHCHECK: the operator looks after driver and executors.
USER 10001
ENTRYPOINT ["/opt/entrypoint.sh"]

FROM installed
ARG PYTHON_IMAGE
ARG PYTHON_DIGEST
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="shardmerge-sink" \
      org.opencontainers.image.description="Spark sink of shardmerge" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${PYTHON_IMAGE}" \
      org.opencontainers.image.base.digest="${PYTHON_DIGEST}"
# By number: Kubernetes cannot see that a name is not root's (runAsNonRoot).
USER 10001
EXPOSE 9401
ENV HEALTH_URL=http://127.0.0.1:9401/metrics
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=6 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(os.environ['HEALTH_URL'], timeout=4)"]
ENTRYPOINT ["shardmerge"]
CMD ["sink", "--pipeline", "/etc/shardmerge/pipeline.toml", "--master", "local[2]", "--metrics-host", "0.0.0.0", "--metrics-port", "9401"]
