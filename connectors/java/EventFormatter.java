package io.debezium.pipeline.source.spi;

import java.util.Map;
import org.apache.kafka.connect.data.Struct;

/**
 * Has the name of the class with which Debezium describes each event that it reads: as JSON, by an
 * ObjectMapper made for it, for the attribute {@code LastEvent} of its JMX metrics. That was a fifth
 * of the time of the thread that reads the binlog. Here the description is one text for all events.
 *
 * <p>{@link shardmerge.connect.Replacements} puts it in the place of that class.
 *
 * <p>Source: Debezium 3.6.1, {@code CommonEventMeter.onEvent}, {@code EventMetadataProvider}, which
 * call these methods; besides, {@code TransactionMonitor} in a message of an error.
 */
class EventFormatter {

    static final String TEXT = "not kept: it costs more than to read the event";

    public EventFormatter sourcePosition(Map<String, String> position) {
        return this;
    }

    public EventFormatter key(Object key) {
        return this;
    }

    public EventFormatter value(Struct value) {
        return this;
    }

    @Override
    public String toString() {
        return TEXT;
    }
}
