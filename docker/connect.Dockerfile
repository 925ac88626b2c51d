# Kafka Connect with Debezium, and beside it the converter of exact values (connectors/java).
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

FROM connect
COPY --from=compiled /shardmerge-exact-values.jar /kafka/connect/debezium-connector-mysql/
COPY --from=compiled /shardmerge-exact-values.jar /kafka/connect/debezium-connector-mariadb/
