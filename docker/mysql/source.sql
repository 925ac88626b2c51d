-- The connector's account, as Debezium's documentation of the MySQL connector asks for it.
CREATE USER 'debezium'@'%' IDENTIFIED BY 'debezium';
GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES ON *.* TO 'debezium'@'%';
CREATE DATABASE app;
-- Its signal table: the connector writes marks there while it reads a single table again.
GRANT CREATE, SELECT, INSERT, DELETE ON `shardmerge\_%`.* TO 'debezium'@'%';
