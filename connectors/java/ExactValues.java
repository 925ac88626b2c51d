package shardmerge.connect;

import io.debezium.spi.converter.CustomConverter;
import io.debezium.spi.converter.RelationalColumn;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.Year;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.util.Arrays;
import java.util.Base64;
import java.util.Locale;
import java.util.Properties;
import java.util.UUID;
import org.apache.kafka.connect.data.SchemaBuilder;

/**
 * Gives values of a MySQL server exactly where Debezium does not.
 *
 * <ul>
 *   <li>BOOL, BOOLEAN: the integer that a TINYINT(1) has; Debezium makes a truth value of it.
 *   <li>REAL: a double; Debezium makes a single of it.
 *   <li>FLOAT4, FLOAT8: numbers; Debezium does not know these names of types, and fails.
 *   <li>JSON: the server's own text; see {@link JsonText}.
 *   <li>YEAR: 0 for 0000, from snapshot and binlog alike.
 *   <li>CHAR, VARCHAR, TEXT with CHARACTER SET binary: the bytes; Debezium reads them as text. Those
 *       of a CHAR have its length, as those of a BINARY have.
 *   <li>Text of cp932 on MariaDB that is not ASCII: with U+FFFD, which holds its shard. Debezium
 *       takes cp932 for GB2312, and finds Chinese characters in it.
 *   <li>UUID of MariaDB: its text. The binlog leaves bytes of zero at the end out, and Debezium puts
 *       them in front.
 *   <li>TIMESTAMP: one text for one moment; Debezium's text has other digits from a snapshot than
 *       from the binlog.
 *   <li>DATE, DATETIME, TIMESTAMP that are NOT NULL: a zero date reaches a converter as null. It
 *       becomes a value that no date has, instead of the column's default or 1970-01-01.
 * </ul>
 *
 * <p>Configure the connector with {@code driver.tinyInt1isBit=false} and
 * {@code driver.yearIsDateType=false}: the driver destroys these values otherwise.
 *
 * <p>Source: Debezium 3.6, "Custom converters"; {@code BinlogValueConverters} for what it has
 * itself; measured, tests/integration/spark/test_every_value.py.
 */
public final class ExactValues implements CustomConverter<SchemaBuilder, RelationalColumn> {

    /** A zero date's day since 1970: long before the first that MySQL has. */
    static final int ZERO_DAY = -100_000_000;
    /** A zero TIMESTAMP: below the range of the type. */
    static final String ZERO_TIMESTAMP = "1970-01-01T00:00:00Z";

    private static final DateTimeFormatter SECONDS =
            new DateTimeFormatterBuilder().appendPattern("uuuu-MM-dd'T'HH:mm:ss").toFormatter();
    private static final DateTimeFormatter MICROS =
            new DateTimeFormatterBuilder()
                    .append(SECONDS)
                    .appendFraction(ChronoField.NANO_OF_SECOND, 6, 6, true)
                    .toFormatter();
    private static final long DAY_MILLIS = 86_400_000L;
    private static final long DAY_MICROS = 86_400_000_000L;
    private static final int MILLISECOND_DIGITS = 3;

    private static final int UUID_BYTES = 16;
    private static final char NO_CHARACTER = '\ufffd';

    private boolean asBase64;
    private boolean isMariaDb;
    private boolean isOld;

    /**
     * Takes {@code binary.handling.mode}, which must be the connector's: base64 or bytes;
     * {@code flavour}: mariadb; and {@code json}: mysql57 for a server before MySQL 8.0.
     */
    @Override
    public void configure(Properties properties) {
        Replacements.takeOver();
        String mode = properties.getProperty("binary.handling.mode", "");
        if (!mode.equals("base64") && !mode.equals("bytes")) {
            throw new IllegalArgumentException("binary.handling.mode is '" + mode + "', not base64 or bytes");
        }
        asBase64 = mode.equals("base64");
        isMariaDb = properties.getProperty("flavour", "").equals("mariadb");
        isOld = properties.getProperty("json", "").equals("mysql57");
    }

    @Override
    public void converterFor(RelationalColumn column, ConverterRegistration<SchemaBuilder> registration) {
        String type = column.typeName() == null ? "" : column.typeName().toUpperCase(Locale.ROOT);
        // DOUBLE PRECISION UNSIGNED ZEROFILL → DOUBLE.
        String first = type.split(" ", 2)[0];
        if (isMariaDb
                && "cp932".equalsIgnoreCase(column.charsetName())
                && !first.equals("ENUM")
                && !first.equals("SET")) {
            registration.register(SchemaBuilder.string(), value -> orNull(column, value, ExactValues::ascii));
            return;
        }
        switch (first) {
            case "FLOAT4" -> registration.register(
                    SchemaBuilder.float32(),
                    value -> orNull(column, value, some -> number(first, some).floatValue()));
            case "FLOAT8", "REAL", "DOUBLE" -> registration.register(
                    SchemaBuilder.float64(),
                    value -> orNull(column, value, some -> number(first, some).doubleValue()));
            case "BOOL", "BOOLEAN" ->
                    registration.register(SchemaBuilder.int16(), value -> orNull(column, value, ExactValues::integer));
            case "JSON" -> registration.register(
                    SchemaBuilder.string().name("io.debezium.data.Json").version(1),
                    value -> orNull(column, value, this::json));
            case "YEAR" -> registration.register(
                    SchemaBuilder.int32().name("io.debezium.time.Year").version(1),
                    value -> orNull(column, value, ExactValues::year));
            case "TIMESTAMP" -> registration.register(
                    SchemaBuilder.string().name("io.debezium.time.ZonedTimestamp").version(1),
                    value -> value != null ? timestamp(value) : column.isOptional() ? null : ZERO_TIMESTAMP);
            case "UUID" -> registration.register(
                    SchemaBuilder.string().name("io.debezium.data.Uuid").version(1),
                    value -> orNull(column, value, ExactValues::uuid));
            // CHARACTER VARYING and LONG VARCHAR, too.
            case "CHAR", "CHARACTER", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "LONG" -> {
                if ("binary".equalsIgnoreCase(column.charsetName())) {
                    boolean isFixed = type.equals("CHAR") || type.equals("CHARACTER");
                    int least = isFixed ? Math.max(column.length().orElse(1), 1) : 0;
                    registration.register(
                            asBase64 ? SchemaBuilder.string() : SchemaBuilder.bytes(),
                            value -> orNull(column, value, some -> bytes(some, least)));
                }
            }
            default -> {
                if (!column.isOptional()) {
                    date(type, column, registration);
                }
            }
        }
    }

    private static void date(
            String type, RelationalColumn column, ConverterRegistration<SchemaBuilder> registration) {
        switch (type) {
            case "DATE" -> registration.register(
                    SchemaBuilder.int32().name("io.debezium.time.Date").version(1),
                    value -> value == null ? ZERO_DAY : days(value));
            case "DATETIME" -> {
                boolean micros = column.length().orElse(0) > MILLISECOND_DIGITS;
                String name = micros ? "io.debezium.time.MicroTimestamp" : "io.debezium.time.Timestamp";
                registration.register(
                        SchemaBuilder.int64().name(name).version(1),
                        value -> value == null ? ZERO_DAY * (micros ? DAY_MICROS : DAY_MILLIS) : moment(value, micros));
            }
            default -> {}
        }
    }

    private interface Exactly {
        Object of(Object value);
    }

    private static Object orNull(RelationalColumn column, Object value, Exactly exactly) {
        if (value != null) {
            return exactly.of(value);
        }
        if (column.isOptional()) {
            return null;
        }
        throw new IllegalArgumentException(
                "NULL in " + column.dataCollection() + "." + column.name() + ", which is NOT NULL");
    }

    private static Object integer(Object value) {
        if (value instanceof Boolean truth) {
            // A default; values come as numbers.
            return (short) (truth ? 1 : 0);
        }
        return number("BOOL", value).shortValue();
    }

    private static Number number(String type, Object value) {
        if (value instanceof Number number) {
            return number;
        }
        throw unexpected(type, value);
    }

    private Object json(Object value) {
        if (value instanceof byte[] bytes) {
            // MariaDB's JSON is text, which may begin with a byte that MySQL's binary form has.
            return isMariaDb ? new String(bytes, StandardCharsets.UTF_8) : JsonText.of(bytes, isOld);
        }
        if (value instanceof String text) {
            return isOld ? JsonText.ofOld(text) : text;
        }
        throw unexpected("JSON", value);
    }

    /** A binlog leaves zeros at the end of a CHAR out. The server gives them. */
    private Object bytes(Object value, int least) {
        byte[] some;
        if (value instanceof byte[] data) {
            some = data;
        } else if (value instanceof String text) {
            // A default.
            some = text.getBytes(StandardCharsets.UTF_8);
        } else {
            throw unexpected("VARBINARY", value);
        }
        some = some.length < least ? Arrays.copyOf(some, least) : some;
        return asBase64 ? Base64.getEncoder().encodeToString(some) : ByteBuffer.wrap(some);
    }

    /** A snapshot's text comes in bytes, too, with a question mark for what GB2312 does not have. */
    private static Object ascii(Object value) {
        String text = value instanceof byte[] bytes
                ? new String(bytes, StandardCharsets.ISO_8859_1)
                : String.valueOf(value);
        return text.chars().allMatch(c -> c < 0x80 && c != '?') ? text : text + NO_CHARACTER;
    }

    private static Object year(Object value) {
        int year;
        if (value instanceof Year some) {
            year = some.getValue();
        } else if (value instanceof Number number) {
            year = number.intValue();
        } else if (value instanceof String text) {
            year = Integer.parseInt(text.trim());
        } else {
            throw unexpected("YEAR", value);
        }
        // The binlog's reader adds 1900 to what the server stores, which is 0 for 0000.
        return year == 1900 ? 0 : year;
    }

    private static Object uuid(Object value) {
        if (value instanceof byte[] bytes) {
            ByteBuffer whole = ByteBuffer.wrap(Arrays.copyOf(bytes, UUID_BYTES));
            return new UUID(whole.getLong(), whole.getLong()).toString();
        }
        if (value instanceof UUID || value instanceof String) {
            return value.toString();
        }
        throw unexpected("UUID", value);
    }

    private static Object days(Object value) {
        if (value instanceof LocalDate date) {
            return (int) date.toEpochDay();
        }
        if (value instanceof java.sql.Date date) {
            return (int) date.toLocalDate().toEpochDay();
        }
        if (value instanceof Integer) {
            return value;
        }
        throw unexpected("DATE", value);
    }

    private static Object moment(Object value, boolean micros) {
        LocalDateTime local;
        if (value instanceof LocalDateTime some) {
            local = some;
        } else if (value instanceof java.sql.Timestamp some) {
            local = some.toLocalDateTime();
        } else if (value instanceof Long) {
            return value;
        } else {
            throw unexpected("DATETIME", value);
        }
        long seconds = local.toEpochSecond(ZoneOffset.UTC);
        return micros
                ? seconds * 1_000_000 + local.getNano() / 1_000
                : seconds * 1_000 + local.getNano() / 1_000_000;
    }

    private static Object timestamp(Object value) {
        Instant instant;
        if (value instanceof ZonedDateTime zoned) {
            instant = zoned.toInstant();
        } else if (value instanceof OffsetDateTime offset) {
            instant = offset.toInstant();
        } else if (value instanceof java.sql.Timestamp some) {
            instant = some.toInstant();
        } else if (value instanceof String) {
            return value;
        } else {
            throw unexpected("TIMESTAMP", value);
        }
        LocalDateTime utc = LocalDateTime.ofInstant(instant, ZoneOffset.UTC);
        return (utc.getNano() == 0 ? SECONDS : MICROS).format(utc) + "Z";
    }

    private static IllegalArgumentException unexpected(String type, Object value) {
        return new IllegalArgumentException("a " + type + " cannot be a " + value.getClass().getName());
    }
}
