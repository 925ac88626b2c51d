package shardmerge.connect;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Lets Kafka Connect tell that {@link ExactValues} is there: Connect lists predicates, and does not
 * know Debezium's own converters.
 *
 * <p>When a worker starts, it makes an object of each plugin, before any connector. It does not
 * list plugins that fail then. So this constructor is the first place for {@link Replacements}.
 *
 * @param <R> any record
 */
public final class ExactValuesPresent<R extends ConnectRecord<R>> implements Predicate<R> {

    /** Lets Debezium use our classes where its own misread something. */
    public ExactValuesPresent() {
        Replacements.takeOver();
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
