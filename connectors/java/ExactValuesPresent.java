package shardmerge.connect;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Lets Kafka Connect tell that {@link ExactValues} is there: it lists predicates, and knows nothing of
 * Debezium's own converters.
 *
 * @param <R> any record
 */
public final class ExactValuesPresent<R extends ConnectRecord<R>> implements Predicate<R> {

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
