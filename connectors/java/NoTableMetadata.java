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
 * <p>It misreads the bits that tell which numeric columns are unsigned: it counts YEAR among them,
 * MySQL 8.0 before 8.0.29 does not. Then it expects one byte more than is there (EOFException), or
 * takes one column's bit for another's. And it knows no kind of metadata that is newer than itself.
 *
 * <p>The reader makes its own part by name, and has no setting for it. So {@link #takeOver} puts a
 * class of that name where the part is looked for, before anybody has looked. MySQL 5.7 and, by
 * default, MariaDB write no such metadata: whoever asks for it must know what to do without.
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
     * @throws IllegalStateException it has used its own already, or cannot be told
     */
    static synchronized void takeOver() {
        // Of the same package. Without Debezium's jars beside this one the attempt ends here.
        Class<?> beside = ColumnType.class;
        try {
            MethodHandles.privateLookupIn(beside, MethodHandles.lookup()).defineClass(own());
        } catch (LinkageError thereIsOne) {
            // Whose it is, is asked below.
        } catch (IllegalAccessException | IOException error) {
            throw new IllegalStateException("Debezium's binlog reader cannot be given another part", error);
        }
        if (!NoTableMetadata.class.isAssignableFrom(TableMapEventMetadataDeserializer.class)) {
            throw new IllegalStateException(
                    "Debezium's binlog reader has been in use before shardmerge's jar was: restart this"
                            + " worker, with the jar in the folder of Debezium's connector");
        }
    }

    /** The class as the jar of this one has it: Debezium's own has the same name. */
    private static byte[] own() throws IOException {
        URL jar = NoTableMetadata.class.getProtectionDomain().getCodeSource().getLocation();
        try (InputStream bytes = URI.create("jar:" + jar + "!/" + PART).toURL().openStream()) {
            return bytes.readAllBytes();
        }
    }
}
