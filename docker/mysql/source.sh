# Sourced by the image's entry point, which gives docker_process_sql; so it must not be executable.
# The connector's account. docs/how-to/secure.md says which rights it needs.
docker_process_sql <<SQL
CREATE USER 'debezium'@'%' IDENTIFIED BY '$(sed "s/[\\\\']/\\\\&/g" <<<"$SOURCE_PASSWORD")';
GRANT RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'debezium'@'%';
CREATE DATABASE app;
GRANT SELECT ON app.* TO 'debezium'@'%';
-- Its signal table: the connector writes marks there while it reads a single table again.
GRANT CREATE, SELECT, INSERT, DELETE ON \`shardmerge\\_%\`.* TO 'debezium'@'%';
SQL
