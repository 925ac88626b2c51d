package shardmerge.connect;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Scanner;
import java.util.stream.Collectors;

import io.debezium.connector.base.ChangeEventQueue;
import io.debezium.connector.base.DefaultQueueProvider;
import io.debezium.pipeline.DataChangeEvent;
import io.debezium.pipeline.notification.Notification;
import io.debezium.schema.SchemaFactory;
import io.debezium.schema.SchemaNameAdjuster;
import io.debezium.util.LoggingContext;
import java.time.Duration;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Puts into a queue what each line says, such as {@code row 7}, {@code heartbeat 7/2/1} or
 * {@code Incremental Snapshot 5}: an event with that offset, which is a position, and events and
 * rows to be passed over. Prints what leaves the queue in the same way.
 */
final class QueuedNotices {

    private static final Schema NOTICE = new SchemaFactory().notificationValueSchema(SchemaNameAdjuster.NO_OP);
    private static final Schema HEARTBEAT = new SchemaFactory().heartbeatValueSchema(SchemaNameAdjuster.NO_OP);
    private static final List<String> PLACE = List.of("pos", "event", "row");

    public static void main(String[] arguments) throws Exception {
        Replacements.takeOver();
        DefaultQueueProvider<DataChangeEvent> events = new DefaultQueueProvider<>();
        events.configure(Map.of("max.queue.size", "100"));
        ChangeEventQueue<DataChangeEvent> queue = new ChangeEventQueue.Builder<DataChangeEvent>()
                .pollInterval(Duration.ofMillis(1))
                .maxQueueSize(100)
                .maxBatchSize(100)
                .maxQueueSizeInBytes(0)
                .loggingContextSupplier(() -> LoggingContext.forConnector("mysql", "x", "streaming"))
                .queueProvider(events)
                .build();
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            String line = lines.nextLine();
            int place = line.lastIndexOf(' ');
            queue.enqueue(event(line.substring(0, place), line.substring(place + 1).split("/")));
        }
        for (DataChangeEvent event : queue.poll()) {
            SourceRecord record = event.getRecord();
            System.out.println(record.key() + " " + PLACE.stream()
                    .map(record.sourceOffset()::get)
                    .filter(Objects::nonNull)
                    .map(Object::toString)
                    .collect(Collectors.joining("/")));
        }
    }

    private static DataChangeEvent event(String kind, String[] place) {
        Map<String, Object> offset = new HashMap<>(Map.of("file", "binlog.000001"));
        for (int part = 0; part < place.length; part++) {
            offset.put(PLACE.get(part), Long.parseLong(place[part]));
        }
        Struct notice = new Struct(NOTICE)
                .put(Notification.ID_KEY, "1")
                .put(Notification.TYPE, "STARTED")
                .put(Notification.AGGREGATE_TYPE, kind)
                .put(Notification.TIMESTAMP, 1L);
        Struct beat = new Struct(HEARTBEAT).put("ts_ms", 1L);
        Object value = kind.equals("row") ? kind : kind.equals("heartbeat") ? beat : notice;
        Schema schema = value instanceof Struct told ? told.schema() : Schema.STRING_SCHEMA;
        return new DataChangeEvent(new SourceRecord(
                Map.of("server", "s1"), offset, "t", Schema.STRING_SCHEMA, kind, schema, value));
    }
}
