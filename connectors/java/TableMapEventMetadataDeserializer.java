package com.github.shyiko.mysql.binlog.event.deserialization;

import shardmerge.connect.NoTableMetadata;

/**
 * The name by which Debezium's binlog reader makes its part that reads a table's optional metadata:
 * see {@link NoTableMetadata}, which puts it there.
 */
public final class TableMapEventMetadataDeserializer extends NoTableMetadata {}
