# Kafka Connect with Debezium, and beside it the converter of exact values (connectors/java) and
# Prometheus' JMX exporter with its rules.
#
# DEBEZIUM_IMAGE: Debezium's image of Kafka Connect.
ARG DEBEZIUM_IMAGE=debezium/connect:3.6.1.Final
FROM ${DEBEZIUM_IMAGE} AS connect

FROM eclipse-temurin:17-jdk AS compiled
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

FROM maven:3-eclipse-temurin-17 AS exporter
RUN mvn --batch-mode dependency:copy -DoutputDirectory=/jmx -Dmdep.stripVersion=true \
    -Dartifact=io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1 \
    && echo "7d61f737fd661610ccc14aea79764faa1ea94a340cbc8f0029b3d2edea3d80c1  /jmx/jmx_prometheus_javaagent.jar" \
        | sha256sum --check

FROM connect
COPY --from=exporter /jmx/jmx_prometheus_javaagent.jar /kafka/jmx/
COPY docker/jmx/connect.yml /kafka/jmx/
COPY --from=compiled /shardmerge-exact-values.jar /kafka/connect/debezium-connector-mysql/
COPY --from=compiled /shardmerge-exact-values.jar /kafka/connect/debezium-connector-mariadb/
