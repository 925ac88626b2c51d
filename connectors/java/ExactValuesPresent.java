package shardmerge.connect;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Lets Kafka Connect tell that {@link ExactValues} is there: it lists predicates, and knows nothing of
 * Debezium's own converters.
 *
 * <p>A worker makes one of each plugin when it starts, before any connector; those that fail it does
 * not list. So this is where {@link NoTableMetadata} comes first.
 *
 * @param <R> any record
 */
public final class ExactValuesPresent<R extends ConnectRecord<R>> implements Predicate<R> {

    /** Lets Debezium's binlog reader leave out what it misreads. */
    public ExactValuesPresent() {
        NoTableMetadata.takeOver();
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public boolean test(R ignored) {
        return true;
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
