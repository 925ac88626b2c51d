-- The sink makes databases and tables, and keeps its control tables here.
CREATE USER 'shardmerge'@'%' IDENTIFIED BY 'shardmerge';
GRANT ALL PRIVILEGES ON *.* TO 'shardmerge'@'%';
