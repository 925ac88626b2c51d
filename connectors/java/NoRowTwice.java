package shardmerge.connect;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Leaves out rows that Debezium's binlog reader reads again by itself.
 *
 * <p>The reader connects again by itself when it lost its connection, or took it for lost because
 * Debezium's queue was full for long. It does not tell Debezium. With GTIDs it then reads its
 * present transaction from the beginning, so the transaction's rows come again. The restart of a
 * task is no such case: Debezium skips what its offset says.
 *
 * <p>An offset numbers the events of its transaction, and the rows of its event. Both numbers grow
 * within a transaction. So a row whose numbers are not higher than the last row's has come before.
 * Without GTIDs the reader goes on at the next event, and nothing comes again.
 *
 * <p>This must be the first transformation, since it must see each row. Each task has one object.
 *
 * <p>Source: mysql-binlog-connector-java 0.41.0, {@code BinaryLogClient}, whose keep-alive thread
 * connects again; Debezium 3.6.1, {@code BinlogOffsetContext}; the test is in
 * tests/integration/connect/test_standing.py.
 */
public final class NoRowTwice implements Transformation<SourceRecord> {

    private static final Logger LOG = LoggerFactory.getLogger(NoRowTwice.class);
    /** Debezium's header of the second record for a row with a new key: a delete, then a create. */
    private static final String OLD_KEY = "__debezium.oldkey";
    /** Inserts, updates, deletes. Rows of snapshots, incremental too, are not numbered like that. */
    private static final Set<String> CHANGES = Set.of("c", "u", "d");

    private String transaction = "";
    private long event;
    private long row;
    private boolean isMadeAnew;
    private long leftOut;
    private Schema schema;
    private Fields fields;

    @Override
    public SourceRecord apply(SourceRecord record) {
        String its = transactionOf(record);
        if (its == null) {
            return record;
        }
        long itsEvent = number(record, "event");
        long itsRow = number(record, "row");
        boolean itIsMadeAnew = !record.headers().isEmpty() && record.headers().lastWithName(OLD_KEY) != null;
        if (its.equals(transaction) && !isBehind(itsEvent, itsRow, itIsMadeAnew)) {
            leftOut++;
            return null;
        }
        if (leftOut > 0) {
            LOG.warn("{} rows of transaction {} were read twice, and are left out", leftOut, transaction);
            leftOut = 0;
        }
        transaction = its;
        event = itsEvent;
        row = itsRow;
        isMadeAnew = itIsMadeAnew;
        return record;
    }

    /** Whether a row of the transaction comes after the last row. */
    private boolean isBehind(long itsEvent, long itsRow, boolean itIsMadeAnew) {
        if (itsEvent != event) {
            return itsEvent > event;
        }
        return itsRow != row ? itsRow > row : itIsMadeAnew && !isMadeAnew;
    }

    /** The GTID of a row of the binlog; null for any other record, and without GTIDs. */
    private String transactionOf(SourceRecord record) {
        if (record.valueSchema() != schema) {
            schema = record.valueSchema();
            fields = Fields.of(schema);
        }
        if (fields == null) {
            return null;
        }
        Struct value = (Struct) record.value();
        if (!CHANGES.contains((String) value.get(fields.operation))) {
            return null;
        }
        return (String) ((Struct) value.get(fields.source)).get(fields.gtid);
    }

    /** A count of the record's offset, which leaves out what is 0. */
    private static long number(SourceRecord record, String name) {
        return record.sourceOffset().get(name) instanceof Number count ? count.longValue() : 0;
    }

    /** Where the records of a schema have what is asked; rows of one table come one after the other. */
    private record Fields(Field operation, Field source, Field gtid) {

        /** Null when they have it not: they are no rows of a source with GTIDs. */
        static Fields of(Schema schema) {
            if (schema == null || schema.field("op") == null || schema.field("source") == null) {
                return null;
            }
            Field source = schema.field("source");
            Field gtid = source.schema().field("gtid");
            return gtid == null ? null : new Fields(schema.field("op"), source, gtid);
        }
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public void close() {
        // It holds nothing.
    }

    @Override
    public void configure(Map<String, ?> settings) {
        // It has no settings.
    }
}
