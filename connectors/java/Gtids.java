package shardmerge.connect;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A set of transactions: MySQL's {@code uuid:1-5:7,uuid:tag:1}, or MariaDB's last one of each
 * domain, {@code 0-1-100}, which stands for all of the domain up to its number.
 */
final class Gtids {

    private final Map<String, List<long[]>> intervals;

    private Gtids(Map<String, List<long[]>> intervals) {
        this.intervals = intervals;
    }

    /** Whether a set is MariaDB's; it gives GTIDs always. */
    static boolean areOfMariaDb(String text) {
        return text != null && text.strip().matches("\\d+-\\d+-\\d+(,.*)?");
    }

    /** Read a set. */
    static Gtids of(String text) {
        Map<String, List<long[]>> found = new HashMap<>();
        for (String part : text.split("[\\s,]+")) {
            if (part.isEmpty()) {
                continue;
            }
            if (part.matches("\\d+-\\d+-\\d+")) {
                String[] numbers = part.split("-");
                add(found, "domain " + numbers[0], 1, Long.parseLong(numbers[2]));
                continue;
            }
            String[] words = part.split(":");
            String name = words[0].toLowerCase(Locale.ROOT);
            for (int at = 1; at < words.length; at++) {
                if (words[at].matches("\\d+(-\\d+)?")) {
                    String[] ends = words[at].split("-");
                    long first = Long.parseLong(ends[0]);
                    long last = Long.parseLong(ends[ends.length - 1]);
                    // An interval that ends before it begins is empty, as it is to Debezium.
                    if (first <= last) {
                        add(found, name, first, last);
                    }
                } else {
                    name = words[0].toLowerCase(Locale.ROOT) + ":" + words[at];
                }
            }
        }
        return new Gtids(found);
    }

    boolean isEmpty() {
        return intervals.isEmpty();
    }

    /** Whether every transaction of this set is in the other one. */
    boolean isWithin(Gtids other) {
        for (Map.Entry<String, List<long[]>> entry : intervals.entrySet()) {
            List<long[]> there = other.intervals.getOrDefault(entry.getKey(), List.of());
            for (long[] own : entry.getValue()) {
                if (there.stream().noneMatch(i -> i[0] <= own[0] && own[1] <= i[1])) {
                    return false;
                }
            }
        }
        return true;
    }

    /** Intervals of one name that touch are one: MySQL writes them so, but a repair may not have. */
    private static void add(Map<String, List<long[]>> found, String name, long first, long last) {
        List<long[]> own = found.computeIfAbsent(name, ignored -> new ArrayList<>());
        long[] merged = {first, last};
        own.removeIf(
                i -> {
                    boolean touches = i[0] <= merged[1] + 1 && merged[0] <= i[1] + 1;
                    if (touches) {
                        merged[0] = Math.min(merged[0], i[0]);
                        merged[1] = Math.max(merged[1], i[1]);
                    }
                    return touches;
                });
        own.add(merged);
    }
}
