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
 * Debezium's schema history in Kafka, of which a restarted connector applies exactly the statements
 * that it will not read again.
 *
 * <p>Debezium's own comparison applies a statement that follows right behind the offset (with
 * GTIDs), and every statement that was ever streamed (without): a connector that is restarted right
 * behind a DDL then applies it twice, or reads rows of before it with the columns of after it.
 *
 * <p>A record's position is that of the connector when it wrote it: the GTIDs <em>before</em> the
 * statement, and the place of its <em>end</em>; on MariaDB, where every statement is a transaction, the
 * place where that <em>begins</em>, and the number of its events before the statement. One that
 * describes a table as it stood, and comes from no statement, has {@code snapshot}. GTIDs with an
 * interval that ends before it begins are those of before a connector went by its place: a repair has
 * marked them, and they say nothing of what was read since.
 * The same order in Python: {@code repair/history.py}.
 *
 * <p>Source: Debezium 3.6, {@code BinlogOffsetContext}; measured, tests/integration/connect.
 */
public final class TrueSchemaHistory extends KafkaSchemaHistory {

    @Override
    public void configure(
            Configuration config,
            HistoryRecordComparator comparator,
            SchemaHistoryListener listener,
            boolean useCatalogBeforeSchema) {
        super.configure(config, new BinlogOrder(), listener, useCatalogBeforeSchema);
    }

    /**
     * Reads the history, and on MariaDB sets right how much of a transaction is passed over.
     *
     * <p>There a statement that is logged as text begins a transaction that for Debezium never ends:
     * until the next one begins it goes on counting events, the server's heartbeats too. A connector
     * that starts from an offset of then passes over so many events, and rows of the transactions
     * behind among them. An offset within rows has the number of rows, this one has none.
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
        super.recover(offsets, schema, parser);
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
            // Read again, unless the server gives no GTIDs any more: then the place has moved on.
            return isEqual && !Gtids.areOfMariaDb(read) && compareEnds(recorded, desired) < 0;
        }

        /** By their places. A statement within a transaction that begins there is read again. */
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
