package shardmerge.connect;

import java.util.Map;
import java.util.Scanner;

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
 * Puts into a queue what each line says, such as {@code row 7} or {@code Incremental Snapshot 5}:
 * an event with that offset. Prints what leaves the queue in the same way.
 */
final class QueuedNotices {

    private static final Schema NOTICE = new SchemaFactory().notificationValueSchema(SchemaNameAdjuster.NO_OP);

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
            queue.enqueue(event(line.substring(0, place), Long.parseLong(line.substring(place + 1))));
        }
        for (DataChangeEvent event : queue.poll()) {
            SourceRecord record = event.getRecord();
            Object kind = record.value() instanceof Struct told ? told.get(Notification.AGGREGATE_TYPE) : "row";
            System.out.println(kind + " " + record.sourceOffset().get("pos"));
        }
    }

    private static DataChangeEvent event(String kind, long pos) {
        boolean isRow = kind.equals("row");
        Struct notice = new Struct(NOTICE)
                .put(Notification.ID_KEY, "1")
                .put(Notification.TYPE, "STARTED")
                .put(Notification.AGGREGATE_TYPE, kind)
                .put(Notification.TIMESTAMP, 1L);
        return new DataChangeEvent(new SourceRecord(
                Map.of("server", "s1"), Map.of("pos", pos), "t",
                isRow ? Schema.STRING_SCHEMA : NOTICE, isRow ? kind : notice));
    }
}
