package shardmerge.connect;

import com.github.shyiko.mysql.binlog.event.TableMapEventMetadata;
import com.github.shyiko.mysql.binlog.event.deserialization.ColumnType;
import com.github.shyiko.mysql.binlog.event.deserialization.TableMapEventMetadataDeserializer;
import com.github.shyiko.mysql.binlog.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.net.URI;
import java.net.URL;

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
 * <p>The reader makes its metadata class by name, and has no setting for it. So {@link #takeOver}
 * defines a class of that name before the reader's own is loaded. MySQL 5.7 and, by default,
 * MariaDB write no such metadata, so all code that uses it can do without.
 *
 * <p>Source: mysql-binlog-connector-java 0.41.0, {@code TableMapEventDataDeserializer}, which hands
 * a copy of these bytes over and reads nothing behind them; in Debezium 3.6.1 nothing calls
 * {@code TableMapEventData.getEventMetadata}; tests/integration/connect/test_year_columns.py.
 */
public class NoTableMetadata {

    private static final String PART =
            "com/github/shyiko/mysql/binlog/event/deserialization/TableMapEventMetadataDeserializer.class";

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

    /**
     * Lets Debezium's binlog reader, of the same plugin, use this class instead of its own. May be
     * called again.
     *
     * @throws IllegalStateException the reader has loaded its own class already, or
     *     refuses this one
     */
    static synchronized void takeOver() {
        // A class of the same package. Without Debezium's jars beside this one, this line fails.
        Class<?> beside = ColumnType.class;
        try {
            MethodHandles.privateLookupIn(beside, MethodHandles.lookup()).defineClass(own());
        } catch (LinkageError thereIsOne) {
            // Whether it is ours is checked below.
        } catch (IllegalAccessException | IOException error) {
            throw new IllegalStateException("Debezium's binlog reader cannot be given another part", error);
        }
        if (!NoTableMetadata.class.isAssignableFrom(TableMapEventMetadataDeserializer.class)) {
            throw new IllegalStateException(
                    "Debezium's binlog reader has been in use before shardmerge's jar was: restart this"
                            + " worker, with the jar in the folder of Debezium's connector");
        }
    }

    /** Our class's bytes, from our own jar: Debezium's class has the same name. */
    private static byte[] own() throws IOException {
        URL jar = NoTableMetadata.class.getProtectionDomain().getCodeSource().getLocation();
        try (InputStream bytes = URI.create("jar:" + jar + "!/" + PART).toURL().openStream()) {
            return bytes.readAllBytes();
        }
    }
}
