# Sourced by the image's entry point, which gives docker_process_sql; so it must not be executable.
# The sink's account: it makes databases and tables, and keeps its control tables here. Where the
# names of the targets' databases are known, docs/how-to/secure.md says which rights are enough.
docker_process_sql <<SQL
CREATE USER 'shardmerge'@'%' IDENTIFIED BY '$(sed "s/[\\\\']/\\\\&/g" <<<"$TARGET_PASSWORD")';
GRANT ALL PRIVILEGES ON *.* TO 'shardmerge'@'%';
SQL
