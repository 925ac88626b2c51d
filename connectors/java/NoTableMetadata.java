package shardmerge.connect;

import com.github.shyiko.mysql.binlog.event.TableMapEventMetadata;
import com.github.shyiko.mysql.binlog.io.ByteArrayInputStream;

/**
 * Leaves out what a server's binlog tells about a table besides the types of its columns (the
 * "optional metadata" of a TABLE_MAP event): nothing in Debezium 3.6.1 asks for it, and its binlog
 * reader fails for good where it misreads it.
 *
 * <p>The reader misreads the bits that tell which numeric columns are unsigned: it counts YEAR
 * among them, MySQL 8.0 before 8.0.29 does not. Then it expects one byte more than there is
 * (EOFException), or takes one column's bit for another's. It also fails at kinds of metadata newer
 * than itself.
 *
 * <p>The reader makes its metadata class by name, and has no setting for it; see {@link Replacements}.
 * MySQL 5.7 and, by default,
 * MariaDB write no such metadata, so all code that uses it can do without.
 *
 * <p>Source: mysql-binlog-connector-java 0.41.0, {@code TableMapEventDataDeserializer}, which hands
 * a copy of these bytes over and reads nothing behind them; in Debezium 3.6.1 nothing calls
 * {@code TableMapEventData.getEventMetadata}; tests/integration/connect/test_year_columns.py.
 */
public class NoTableMetadata {

    /**
     * What the reader asks for.
     *
     * @param metadata the bytes
     * @param columns how many columns the table has
     * @param types their types
     * @return null, as for a server that writes no such metadata
     */
    public final TableMapEventMetadata deserialize(ByteArrayInputStream metadata, int columns, byte[] types) {
        return null;
    }
}
