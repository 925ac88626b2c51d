package io.debezium.connector.base;

import io.debezium.pipeline.DataChangeEvent;
import io.debezium.pipeline.Sizeable;
import io.debezium.pipeline.notification.IncrementalSnapshotNotificationService;
import io.debezium.pipeline.notification.Notification;
import io.debezium.util.LoggingContext.PreviousContext;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Has the name of the class by which the thread that reads a binlog hands its events to the thread
 * of Kafka Connect. {@link shardmerge.connect.Replacements} puts it in the place of that class.
 *
 * <p>Debezium's own class gives no event away before {@code poll.interval.ms} have passed or a batch
 * is complete. In the last millisecond of each interval it does not wait, but asks the clock again
 * and again. Here an event is given away at once. Only after a poll that gave many events does the
 * next one wait until the interval has passed, or a batch is complete: then events come faster than
 * Connect's transactions end, and fewer transactions are cheaper.
 *
 * <p>A notice of an incremental snapshot leaves with the offset of the event in front of it. With
 * Debezium, one thread reads the offset for a notice while another one reads the binlog and changes
 * it. So a notice can have an older offset than the rows in front of it, or the offset of a row that
 * comes behind it, for instance while the queue is full. A task starts from the last offset of the
 * last transaction. If that is a notice's, rows came twice, or a row was lost.
 *
 * <p>So does a heartbeat behind the rows of the transaction that is being read. Debezium makes it
 * when the rows of an event are handed over, and before it counts the event: its offset names the
 * event and no row. A task that starts from there would hand these rows over again. On MariaDB it
 * would begin with the transaction ({@link shardmerge.connect.TrueSchemaHistory}).
 *
 * <p>All else is as there: events leave in the order in which they came; a queue that is full, by
 * number or by bytes, makes the reading thread wait; a failure of that thread is thrown by the next
 * poll, without the events that are in the queue, which a restart reads again.
 *
 * <p>Source: Debezium 3.6.1, {@code ChangeEventQueue}, and who calls it; tests/integration/connect.
 *
 * @param <T> an event
 */
public class ChangeEventQueue<T extends Sizeable> implements ChangeEventQueueMetrics {

    /** How long a poll waits for the first event. Connect does nothing else meanwhile for the task. */
    private static final long IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
    /** After a poll of so many events, the next one waits for more. */
    private static final int MANY = 100;
    /** The name of the schema of a notice, as {@code SchemaFactory} has it. */
    private static final String NOTICE = "io.debezium.connector.common.Notification";
    /** The name of the schema of a heartbeat. */
    private static final String HEARTBEAT = "io.debezium.connector.common.Heartbeat";

    private final int maxQueueSize;
    private final int maxBatchSize;
    private final long maxBytes;
    private final long gatherNanos;
    private final Supplier<PreviousContext> loggingContext;
    private final QueueProvider<T> events;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition hasEvents = lock.newCondition();
    private final Condition hasRoom = lock.newCondition();
    private final Queue<Long> sizes = new ArrayDeque<>();
    /** Of the last event that is no notice; null before the first one. */
    private Map<String, ?> offset;
    /** Notices before the first event: they leave behind it. */
    private final List<T> early = new ArrayList<>();
    private volatile long bytes;
    private volatile RuntimeException failure;
    private boolean gathers;

    /** A snapshot's last event is changed before it is handed over, so it is held back. */
    private volatile boolean buffering;
    private final AtomicReference<T> heldBack = new AtomicReference<>();

    private ChangeEventQueue(Builder<T> made) {
        maxQueueSize = made.maxQueueSize;
        maxBatchSize = made.maxBatchSize;
        maxBytes = made.maxQueueSizeInBytes;
        gatherNanos = made.pollInterval.toNanos();
        loggingContext = made.loggingContextSupplier;
        buffering = made.buffering;
        events = made.queueProvider;
    }

    /** Adds an event; waits while the queue is full. */
    public void enqueue(T event) throws InterruptedException {
        if (event == null) {
            return;
        }
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        T next = buffering ? heldBack.getAndSet(event) : event;
        if (next != null) {
            doEnqueue(next);
        }
    }

    /** Adds the event that is held back, changed by a function. */
    public void flushBuffer(Function<T, T> change) throws InterruptedException {
        T last = heldBack.getAndSet(null);
        if (last != null) {
            doEnqueue(change.apply(last));
        }
    }

    /** From now on no event is held back; the last one must be flushed. */
    public void disableBuffering() {
        assert heldBack.get() == null : "an event is held back";
        buffering = false;
    }

    /** From now on the last event is held back, until the next one or {@link #flushBuffer}. */
    public void enableBuffering() {
        buffering = true;
    }

    /** Whether the last event is held back. */
    public boolean isBuffered() {
        return buffering;
    }

    protected void doEnqueue(T event) throws InterruptedException {
        SourceRecord record = event instanceof DataChangeEvent change ? change.getRecord() : null;
        boolean isNotice = isNotice(record);
        lock.lock();
        try {
            if (isNotice && offset == null) {
                early.add(event);
                return;
            }
            while (isFull()) {
                hasRoom.await();
            }
            boolean isBehindRows = isHeartbeat(record) && isInTransaction(record.sourceOffset());
            add(isNotice || isBehindRows ? withOffset(record) : event);
            if (!isNotice && !isBehindRows && record != null) {
                offset = record.sourceOffset();
                for (T notice : early) {
                    add(withOffset(((DataChangeEvent) notice).getRecord()));
                }
                early.clear();
            }
            if (events.size() == 1 || isBatch()) {
                hasEvents.signal();
            }
        } finally {
            lock.unlock();
        }
    }

    private void add(T event) throws InterruptedException {
        events.enqueue(event);
        if (maxBytes > 0) {
            long size = event.objectSize();
            sizes.add(size);
            bytes += size;
        }
    }

    /** Whether a record is a notice of an incremental snapshot. */
    private static boolean isNotice(SourceRecord record) {
        Schema schema = record == null ? null : record.valueSchema();
        return schema != null
                && NOTICE.equals(schema.name())
                && IncrementalSnapshotNotificationService.INCREMENTAL_SNAPSHOT.equals(
                        ((Struct) record.value()).getString(Notification.AGGREGATE_TYPE));
    }

    private static boolean isHeartbeat(SourceRecord record) {
        Schema schema = record == null ? null : record.valueSchema();
        return schema != null && HEARTBEAT.equals(schema.name());
    }

    /** Whether an offset is in the transaction whose rows the last event belongs to. */
    private boolean isInTransaction(Map<String, ?> other) {
        return offset != null
                && offset.get("row") instanceof Number rows
                && rows.intValue() > 0
                && Objects.equals(offset.get("file"), other.get("file"))
                && Objects.equals(offset.get("pos"), other.get("pos"))
                && Objects.equals(offset.get("gtids"), other.get("gtids"));
    }

    /** A notice or a heartbeat with the offset of the event in front of it. */
    @SuppressWarnings("unchecked") // A queue with notices is one of such events.
    private T withOffset(SourceRecord notice) {
        return (T) new DataChangeEvent(new SourceRecord(
                notice.sourcePartition(), offset, notice.topic(), notice.kafkaPartition(), notice.keySchema(),
                notice.key(), notice.valueSchema(), notice.value(), notice.timestamp(), notice.headers()));
    }

    /**
     * The next events, in their order; none when none came for a while.
     *
     * @throws RuntimeException what {@link #producerException} was given
     */
    public List<T> poll() throws InterruptedException {
        PreviousContext before = loggingContext.get();
        lock.lock();
        try {
            for (long left = IDLE_NANOS; events.size() == 0 && failure == null && left > 0; ) {
                left = hasEvents.awaitNanos(left);
            }
            for (long left = gatherNanos; gathers && !isBatch() && failure == null && left > 0; ) {
                left = hasEvents.awaitNanos(left);
            }
            if (failure != null) {
                throw failure;
            }
            int count = Math.min(events.size(), maxBatchSize);
            List<T> found = new ArrayList<>(count);
            for (int n = 0; n < count; n++) {
                found.add(events.poll());
                bytes -= maxBytes > 0 ? sizes.remove() : 0;
            }
            gathers = count >= MANY;
            hasRoom.signalAll();
            return found;
        } finally {
            lock.unlock();
            before.restore();
        }
    }

    /** Lets the next poll, or the one that waits, throw this. */
    public void producerException(RuntimeException exception) {
        lock.lock();
        try {
            failure = exception;
            hasEvents.signal();
        } finally {
            lock.unlock();
        }
    }

    private boolean isFull() {
        return events.size() >= maxQueueSize || (maxBytes > 0 && bytes >= maxBytes);
    }

    private boolean isBatch() {
        return events.size() >= maxBatchSize || isFull();
    }

    @Override
    public int totalCapacity() {
        return maxQueueSize;
    }

    @Override
    public int remainingCapacity() {
        return maxQueueSize - events.size();
    }

    @Override
    public long maxQueueSizeInBytes() {
        return maxBytes;
    }

    @Override
    public long currentQueueSizeInBytes() {
        return bytes;
    }

    /** Closes what holds the events, if it can be closed: before Debezium 3.6 it cannot. */
    public void close() throws Exception {
        if ((Object) events instanceof AutoCloseable holder) {
            holder.close();
        }
    }

    /**
     * What a queue is made of; see the properties of a connector with these names.
     *
     * @param <T> an event
     */
    public static class Builder<T extends Sizeable> {

        private Duration pollInterval;
        private int maxQueueSize;
        private int maxBatchSize;
        private long maxQueueSizeInBytes;
        private boolean buffering;
        private Supplier<PreviousContext> loggingContextSupplier;
        private QueueProvider<T> queueProvider;

        public Builder<T> pollInterval(Duration value) {
            pollInterval = value;
            return this;
        }

        public Builder<T> maxQueueSize(int value) {
            maxQueueSize = value;
            return this;
        }

        public Builder<T> maxBatchSize(int value) {
            maxBatchSize = value;
            return this;
        }

        public Builder<T> maxQueueSizeInBytes(long value) {
            maxQueueSizeInBytes = value;
            return this;
        }

        public Builder<T> loggingContextSupplier(Supplier<PreviousContext> value) {
            loggingContextSupplier = value;
            return this;
        }

        public Builder<T> queueProvider(QueueProvider<T> value) {
            queueProvider = value;
            return this;
        }

        public Builder<T> buffering() {
            buffering = true;
            return this;
        }

        public ChangeEventQueue<T> build() {
            return new ChangeEventQueue<>(this);
        }
    }
}
