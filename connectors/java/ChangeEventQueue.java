package io.debezium.connector.base;

import io.debezium.pipeline.Sizeable;
import io.debezium.util.LoggingContext.PreviousContext;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Supplier;

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
        long size = maxBytes > 0 ? event.objectSize() : 0;
        lock.lock();
        try {
            while (isFull()) {
                hasRoom.await();
            }
            events.enqueue(event);
            if (maxBytes > 0) {
                sizes.add(size);
                bytes += size;
            }
            if (events.size() == 1 || isBatch()) {
                hasEvents.signal();
            }
        } finally {
            lock.unlock();
        }
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
