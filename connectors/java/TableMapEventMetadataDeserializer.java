package com.github.shyiko.mysql.binlog.event.deserialization;

import shardmerge.connect.NoTableMetadata;

/**
 * Has the name of the class with which Debezium's binlog reader reads a table's optional metadata.
 * {@link shardmerge.connect.Replacements} puts it in the place of that class.
 */
public final class TableMapEventMetadataDeserializer extends NoTableMetadata {}
