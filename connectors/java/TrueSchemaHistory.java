package shardmerge.connect;

import io.debezium.config.Configuration;
import io.debezium.connector.binlog.BinlogOffsetContext;
import io.debezium.document.Document;
import io.debezium.pipeline.spi.Offsets;
import io.debezium.relational.Tables;
import io.debezium.relational.ddl.DdlParser;
import io.debezium.relational.history.HistoryRecordComparator;
import io.debezium.relational.history.SchemaHistoryListener;
import io.debezium.storage.kafka.history.KafkaSchemaHistory;
import java.util.Map;

/**
 * Debezium's schema history in Kafka, from which a restarted connector applies exactly the
 * statements that it will not read again. What it learned wrongly, {@link LearnedColumns} corrects.
 *
 * <p>Debezium's own comparison applies a statement that follows right behind the offset (with
 * GTIDs), and every statement that was ever streamed (without). A connector that is restarted right
 * behind a DDL then applies it twice, or reads rows from before it with the columns after it.
 *
 * <p>A record's position is the connector's when it wrote the record: the GTIDs <em>before</em> the
 * statement, and the place of its <em>end</em>. On MariaDB, where every statement is a transaction,
 * it is the place where the transaction <em>begins</em>, and the number of its events before the
 * statement. A record that comes from no statement, but describes a table, has {@code snapshot}.
 * GTIDs with an interval that ends before it begins are from before a connector read by position: a
 * repair has marked them, and they say nothing of what was read since. The same order in Python:
 * {@code repair/schema_history/history.py}.
 *
 * <p>Source: Debezium 3.6, {@code BinlogOffsetContext}; measured, tests/integration/connect.
 */
public final class TrueSchemaHistory extends KafkaSchemaHistory {

    private LearnedColumns columns;

    @Override
    public void configure(
            Configuration config,
            HistoryRecordComparator comparator,
            SchemaHistoryListener listener,
            boolean useCatalogBeforeSchema) {
        columns = new LearnedColumns(listener, useCatalogBeforeSchema);
        super.configure(config, new BinlogOrder(), columns, useCatalogBeforeSchema);
    }

    /**
     * Reads the history, and on MariaDB corrects how many events of a transaction are skipped.
     *
     * <p>On MariaDB a statement that is logged as text begins a transaction that never ends for
     * Debezium: it counts events, even the server's heartbeats, until the next transaction begins.
     * A connector that starts from such an offset would skip that many events, and so rows of later
     * transactions. An offset within rows has a number of rows; such an offset has none.
     */
    @Override
    public void recover(Offsets<?, ?> offsets, Tables schema, DdlParser parser) throws InterruptedException {
        for (Map.Entry<?, ?> entry : offsets) {
            if (entry.getValue() instanceof BinlogOffsetContext<?> offset
                    && Gtids.areOfMariaDb(offset.gtidSet())
                    && offset.rowsToSkipUponRestart() == 0) {
                offset.setInitialSkips(0, 0);
            }
        }
        columns.begin(schema, parser);
        try {
            super.recover(offsets, schema, parser);
        } finally {
            columns.end();
        }
    }

    /** Whether a statement is before the place where a connector goes on to read. */
    static final class BinlogOrder extends HistoryRecordComparator {

        private static final String BY_PLACE = ":9223372036854775806-1";

        @Override
        protected boolean isPositionAtOrBefore(Document recorded, Document desired) {
            if (recorded.has("snapshot")) {
                return true;
            }
            String before = recorded.getString("gtids");
            String read = desired.getString("gtids");
            if (isBlank(before) || isBlank(read) || isByPlace(before)) {
                return hasEnded(recorded, desired);
            }
            Gtids own = Gtids.of(before);
            Gtids other = Gtids.of(read);
            if (other.isEmpty()) {
                return hasEnded(recorded, desired);
            }
            boolean isWithin = own.isWithin(other);
            boolean isEqual = isWithin && other.isWithin(own);
            if (isWithin && !isEqual) {
                return true;
            }
            if (isByPlace(read)) {
                return hasEnded(recorded, desired);
            }
            // Read again, unless the server gives no GTIDs now: then the position has moved on.
            return isEqual && !Gtids.areOfMariaDb(read) && compareEnds(recorded, desired) < 0;
        }

        /** Compares by position. A statement in a transaction that begins there is read again. */
        private static boolean hasEnded(Document recorded, Document desired) {
            int ends = compareEnds(recorded, desired);
            return ends < 0 || ends == 0 && recorded.getInteger("event", 0) == 0;
        }

        private static boolean isByPlace(String gtids) {
            return gtids.contains(BY_PLACE);
        }

        private static boolean isBlank(String gtids) {
            return gtids == null || gtids.isBlank();
        }

        private static int compareEnds(Document recorded, Document desired) {
            int files = Long.compare(fileNumber(recorded), fileNumber(desired));
            if (files != 0) {
                return files;
            }
            return Long.compare(recorded.getLong("pos", 0), desired.getLong("pos", 0));
        }

        /** Of {@code binlog.000007}: 7. Files are ordered by it, not by their names. */
        private static long fileNumber(Document position) {
            String name = position.getString("file");
            return Long.parseLong(name.substring(name.lastIndexOf('.') + 1));
        }
    }
}
