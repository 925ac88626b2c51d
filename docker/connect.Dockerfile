# Kafka Connect with Debezium, and beside it the converter of exact values (connectors/java) and
# Prometheus' JMX exporter with its rules.
#
# Build from the project's root: docker build -f docker/connect.Dockerfile .
# For Strimzi's KafkaConnect, which starts workers by its own scripts: --target strimzi
#
# DEBEZIUM_IMAGE: Debezium's image of Kafka Connect. Debezium and Strimzi publish in quay.io only.
# STRIMZI_IMAGE: Strimzi's image of Kafka; its tag names the operator's version and Kafka's.
# JDK_IMAGE, MAVEN_IMAGE: what compiles and fetches.
# …_DIGEST: the digest that pins an image, as sha256:… ("" takes the tag as it is).
# VERSION, REVISION: what the labels say: the release and the commit.
ARG DEBEZIUM_IMAGE=quay.io/debezium/connect:3.6.1.Final
ARG DEBEZIUM_DIGEST=""
ARG STRIMZI_IMAGE=quay.io/strimzi/kafka:1.2.0-kafka-4.3.1
ARG STRIMZI_DIGEST=""
ARG JDK_IMAGE=eclipse-temurin:17-jdk
ARG JDK_DIGEST=""
ARG MAVEN_IMAGE=maven:3-eclipse-temurin-17
ARG MAVEN_DIGEST=""
FROM ${DEBEZIUM_IMAGE}${DEBEZIUM_DIGEST:+@${DEBEZIUM_DIGEST}} AS connect

FROM ${JDK_IMAGE}${JDK_DIGEST:+@${JDK_DIGEST}} AS compiled
COPY --from=connect /kafka/libs /kafka/libs
COPY --from=connect /kafka/connect /kafka/connect
COPY connectors/java /java
RUN javac --release 17 -cp "/kafka/libs/*:/kafka/connect/debezium-connector-mysql/*" -d /classes /java/*.java \
    && mkdir -p /classes/META-INF/services \
    && echo shardmerge.connect.ExactValuesPresent \
        > /classes/META-INF/services/org.apache.kafka.connect.transforms.predicates.Predicate \
    && echo shardmerge.connect.NoRowTwice \
        > /classes/META-INF/services/org.apache.kafka.connect.transforms.Transformation \
    && jar --create --file /shardmerge-exact-values.jar -C /classes .

FROM ${MAVEN_IMAGE}${MAVEN_DIGEST:+@${MAVEN_DIGEST}} AS exporter
RUN mvn --batch-mode dependency:copy -DoutputDirectory=/jmx -Dmdep.stripVersion=true \
    -Dartifact=io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1 \
    && echo "7d61f737fd661610ccc14aea79764faa1ea94a340cbc8f0029b3d2edea3d80c1  /jmx/jmx_prometheus_javaagent.jar" \
        | sha256sum --check

FROM ${STRIMZI_IMAGE}${STRIMZI_DIGEST:+@${STRIMZI_DIGEST}} AS strimzi
ARG STRIMZI_IMAGE
ARG STRIMZI_DIGEST
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="shardmerge-connect" \
      org.opencontainers.image.description="Kafka Connect for shardmerge, started by Strimzi" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${STRIMZI_IMAGE}" \
      org.opencontainers.image.base.digest="${STRIMZI_DIGEST}"
COPY --from=connect /kafka/connect/debezium-connector-mysql/ /opt/kafka/plugins/debezium-connector-mysql/
COPY --from=connect /kafka/connect/debezium-connector-mariadb/ /opt/kafka/plugins/debezium-connector-mariadb/
COPY --from=compiled /shardmerge-exact-values.jar /opt/kafka/plugins/debezium-connector-mysql/
COPY --from=compiled /shardmerge-exact-values.jar /opt/kafka/plugins/debezium-connector-mariadb/
# Strimzi's own user. There is no HEALTHCHECK: its operator sets the probes.
USER 1001

FROM connect
ARG DEBEZIUM_IMAGE
ARG DEBEZIUM_DIGEST
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="shardmerge-connect" \
      org.opencontainers.image.description="Kafka Connect for shardmerge" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${DEBEZIUM_IMAGE}" \
      org.opencontainers.image.base.digest="${DEBEZIUM_DIGEST}"
COPY --from=exporter /jmx/jmx_prometheus_javaagent.jar /kafka/jmx/
COPY docker/jmx/connect.yml /kafka/jmx/
COPY --from=compiled /shardmerge-exact-values.jar /kafka/connect/debezium-connector-mysql/
COPY --from=compiled /shardmerge-exact-values.jar /kafka/connect/debezium-connector-mariadb/
# Debezium's own user, by number: Kubernetes cannot see that a name is not root's (runAsNonRoot).
USER 1001
ENV HEALTH_URL=http://127.0.0.1:8083/connectors
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
    CMD curl --fail --silent --max-time 4 "$HEALTH_URL"
