package shardmerge.connect;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * MySQL's JSON: from the binary form of its binlog to the text that the server itself gives.
 *
 * <p>Every byte is as the server writes it: blanks behind commas and colons, the shortest digits of
 * a double with a mark that it is one (1e15, 5.0), all digits of a decimal. So a row that a
 * snapshot read as text and the same row from the binlog are equal.
 *
 * <p>Source: MySQL 8.0, comment of sql/json_binary.h (binary form), Json_wrapper::to_string (text),
 * my_gcvt (doubles), my_time.cc (packed times), decimal.c (decimals); measured:
 * tests/integration/spark/test_every_value.py.
 */
final class JsonText {

    private static final char[] HEX = "0123456789abcdef".toCharArray();
    private static final int[] DECIMAL_BYTES = {0, 1, 1, 2, 2, 3, 3, 4, 4};
    private static final int DECIMAL_GROUP = 9;
    private static final int BASE64_LINE = 76;

    private static final int NEW_DECIMAL = 246;
    private static final int DATE = 10;
    private static final int TIME = 11;
    private static final int DATETIME = 12;
    private static final int TIMESTAMP = 7;

    private final byte[] bytes;
    private final boolean isOld;
    private final StringBuilder text = new StringBuilder();

    private JsonText(byte[] bytes, boolean isOld) {
        this.bytes = bytes;
        this.isOld = isOld;
    }

    /**
     * The text of a column's value.
     *
     * @param bytes as in the binlog of MySQL, or text that begins with a printable character
     * @param isOld the server is older than MySQL 8.0: a double that is a whole number has no mark
     * @throws IllegalArgumentException it is not MySQL's binary form
     */
    static String of(byte[] bytes, boolean isOld) {
        if (bytes.length == 0) {
            // The value that ADD COLUMN … JSON NOT NULL puts into existing rows.
            return "null";
        }
        if ((bytes[0] & 0xff) > 0x0f) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
        JsonText json = new JsonText(bytes, isOld);
        try {
            json.value(bytes[0], 1);
        } catch (IndexOutOfBoundsException e) {
            throw new IllegalArgumentException("a JSON value ends within itself", e);
        }
        return json.text.toString();
    }

    /**
     * The JSON that a server older than MySQL 8.0 means by its text (measured, 5.7.22): it writes
     * the line ends in the base64 of a binary value as they are, and -0.0 as -0, which a reader
     * takes for 0.
     */
    static String ofOld(String written) {
        if (written.indexOf('\n') < 0 && !written.contains("-0")) {
            return written;
        }
        StringBuilder out = new StringBuilder(written.length() + 16);
        boolean inString = false;
        for (int i = 0; i < written.length(); i++) {
            char c = written.charAt(i);
            if (c == '\n') {
                out.append("\\n");
                continue;
            }
            out.append(c);
            if (inString && c == '\\') {
                out.append(written.charAt(++i));
            } else if (c == '"') {
                inString = !inString;
            } else if (!inString && c == '0' && isNegativeZero(written, i)) {
                out.append(".0");
            }
        }
        return out.toString();
    }

    private static boolean isNegativeZero(String written, int zero) {
        boolean ends = zero + 1 == written.length() || ".0123456789eE".indexOf(written.charAt(zero + 1)) < 0;
        return ends && zero > 0 && written.charAt(zero - 1) == '-';
    }

    private void value(int type, int at) {
        switch (type) {
            case 0x00 -> container(at, false, true);
            case 0x01 -> container(at, true, true);
            case 0x02 -> container(at, false, false);
            case 0x03 -> container(at, true, false);
            case 0x04 -> literal(bytes[at]);
            case 0x05 -> text.append((short) unsigned(at, 2));
            case 0x06 -> text.append(unsigned(at, 2));
            case 0x07 -> text.append((int) unsigned(at, 4));
            case 0x08 -> text.append(unsigned(at, 4));
            case 0x09 -> text.append(unsigned(at, 8));
            case 0x0a -> text.append(Long.toUnsignedString(unsigned(at, 8)));
            case 0x0b -> {
                String digits = doubleText(Double.longBitsToDouble(unsigned(at, 8)));
                boolean isBare = isOld && digits.endsWith(".0") && !digits.equals("-0.0");
                text.append(isBare ? digits.substring(0, digits.length() - 2) : digits);
            }
            case 0x0c -> {
                int start = afterLength(at);
                quoted(new String(bytes, start, length(at), StandardCharsets.UTF_8));
            }
            case 0x0f -> custom(bytes[at] & 0xff, afterLength(at + 1), length(at + 1));
            default -> throw new IllegalArgumentException("type " + type + " of a JSON value is not known");
        }
    }

    /** An object or array: count, size, for an object its keys' entries, the values' entries. */
    private void container(int start, boolean large, boolean object) {
        int width = large ? 4 : 2;
        int count = (int) unsigned(start, width);
        int keys = start + 2 * width;
        int values = keys + (object ? count * (width + 2) : 0);
        text.append(object ? '{' : '[');
        for (int i = 0; i < count; i++) {
            if (i > 0) {
                text.append(", ");
            }
            if (object) {
                int key = keys + i * (width + 2);
                int at = start + (int) unsigned(key, width);
                int length = (int) unsigned(key + width, 2);
                quoted(new String(bytes, at, length, StandardCharsets.UTF_8));
                text.append(": ");
            }
            int entry = values + i * (width + 1);
            int type = bytes[entry];
            boolean inlined = type >= 0x04 && type <= 0x06 || large && (type == 0x07 || type == 0x08);
            value(type, inlined ? entry + 1 : start + (int) unsigned(entry + 1, width));
        }
        text.append(object ? '}' : ']');
    }

    private void literal(int code) {
        switch (code) {
            case 0 -> text.append("null");
            case 1 -> text.append("true");
            case 2 -> text.append("false");
            default -> throw new IllegalArgumentException("JSON literal " + code + " is not known");
        }
    }

    /** A value of an SQL type that JSON lacks. */
    private void custom(int type, int start, int length) {
        switch (type) {
            case NEW_DECIMAL -> text.append(decimal(start).toPlainString());
            case DATE, DATETIME, TIMESTAMP, TIME -> {
                text.append('"');
                time(type, unsigned(start, 8));
                text.append('"');
            }
            default -> {
                byte[] data = java.util.Arrays.copyOfRange(bytes, start, start + length);
                String lines =
                        Base64.getMimeEncoder(BASE64_LINE, new byte[] {'\n'}).encodeToString(data);
                quoted("base64:type" + type + ":" + lines);
            }
        }
    }

    private void time(int type, long packed) {
        if (packed < 0) {
            text.append('-');
            packed = -packed;
        }
        long fraction = packed & 0xffffff;
        long whole = packed >> 24;
        if (type == TIME) {
            two(whole >> 12 & 0x3ff);
        } else {
            long yearMonth = whole >> 22;
            String year = Long.toString(yearMonth / 13);
            text.append("0".repeat(Math.max(0, 4 - year.length()))).append(year).append('-');
            two(yearMonth % 13);
            text.append('-');
            two(whole >> 17 & 0x1f);
            if (type == DATE) {
                return;
            }
            text.append(' ');
            two(whole >> 12 & 0x1f);
        }
        text.append(':');
        two(whole >> 6 & 0x3f);
        text.append(':');
        two(whole & 0x3f);
        String micros = Long.toString(fraction);
        text.append('.').append("0".repeat(6 - micros.length())).append(micros);
    }

    private void two(long number) {
        if (number < 10) {
            text.append('0');
        }
        text.append(number);
    }

    /** Precision, scale, and groups of digits, of which nine take four bytes. */
    private BigDecimal decimal(int start) {
        int scale = bytes[start + 1] & 0xff;
        int whole = (bytes[start] & 0xff) - scale;
        int at = start + 2;
        boolean negative = (bytes[at] & 0x80) == 0;
        StringBuilder digits = new StringBuilder();
        int[] sizes = {whole % DECIMAL_GROUP, whole / DECIMAL_GROUP, scale / DECIMAL_GROUP, scale % DECIMAL_GROUP};
        boolean first = true;
        for (int part = 0; part < 4; part++) {
            boolean full = part == 1 || part == 2;
            int groups = full ? sizes[part] : (sizes[part] > 0 ? 1 : 0);
            int width = full ? DECIMAL_GROUP : sizes[part];
            int size = full ? 4 : DECIMAL_BYTES[sizes[part]];
            for (int group = 0; group < groups; group++) {
                long number = 0;
                for (int i = 0; i < size; i++) {
                    int b = bytes[at++] & 0xff;
                    if (first) {
                        b ^= 0x80;
                        first = false;
                    }
                    number = number << 8 | (negative ? ~b & 0xff : b);
                }
                String some = Long.toString(number);
                digits.append("0".repeat(Math.max(0, width - some.length()))).append(some);
            }
        }
        BigInteger unscaled = new BigInteger(digits.length() == 0 ? "0" : digits.toString());
        return new BigDecimal(negative ? unscaled.negate() : unscaled, scale);
    }

    /**
     * A double as the server writes it: the fewest digits that name it, with an exponent where its
     * decimal point would stand more than 15 digits away.
     */
    static String doubleText(double value) {
        if (value == 0) {
            return 1 / value < 0 ? "-0.0" : "0.0";
        }
        BigDecimal shortest = shortest(Math.abs(value)).stripTrailingZeros();
        String digits = shortest.unscaledValue().toString();
        int point = digits.length() - shortest.scale();
        StringBuilder out = new StringBuilder(value < 0 ? "-" : "");
        if (point < -14 || point > 15) {
            out.append(digits.charAt(0));
            if (digits.length() > 1) {
                out.append('.').append(digits, 1, digits.length());
            }
            return out.append('e').append(point - 1).toString();
        }
        if (point <= 0) {
            return out.append("0.").append("0".repeat(-point)).append(digits).toString();
        }
        if (point < digits.length()) {
            return out.append(digits, 0, point).append('.').append(digits, point, digits.length()).toString();
        }
        return out.append(digits).append("0".repeat(point - digits.length())).append(".0").toString();
    }

    /** The nearest decimal with the fewest digits; before Java 19 Double.toString may have more. */
    private static BigDecimal shortest(double value) {
        BigDecimal known = new BigDecimal(Double.toString(value)).stripTrailingZeros();
        BigDecimal exact = new BigDecimal(value);
        BigDecimal best = exact.round(new MathContext(Math.max(1, known.precision()), RoundingMode.HALF_EVEN));
        if (best.doubleValue() != value) {
            best = known;
        }
        for (int digits = known.precision() - 1; digits > 0; digits--) {
            BigDecimal fewer = exact.round(new MathContext(digits, RoundingMode.HALF_EVEN));
            if (fewer.doubleValue() != value) {
                break;
            }
            best = fewer;
        }
        return best;
    }

    private void quoted(String value) {
        text.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            switch (c) {
                case '"' -> text.append("\\\"");
                case '\\' -> text.append("\\\\");
                case '\b' -> text.append("\\b");
                case '\t' -> text.append("\\t");
                case '\f' -> text.append("\\f");
                case '\n' -> text.append("\\n");
                case '\r' -> text.append("\\r");
                default -> {
                    if (c < 0x20) {
                        text.append("\\u00").append(HEX[c >> 4]).append(HEX[c & 0xf]);
                    } else {
                        text.append(c);
                    }
                }
            }
        }
        text.append('"');
    }

    /** Little-endian. */
    private long unsigned(int at, int width) {
        long number = 0;
        for (int i = width - 1; i >= 0; i--) {
            number = number << 8 | bytes[at + i] & 0xff;
        }
        return number;
    }

    /** A length in groups of seven bits, of which the last has no high bit. */
    private int length(int at) {
        int length = 0;
        for (int shift = 0; ; shift += 7, at++) {
            length |= (bytes[at] & 0x7f) << shift;
            if (bytes[at] >= 0) {
                return length;
            }
        }
    }

    private int afterLength(int at) {
        while (bytes[at] < 0) {
            at++;
        }
        return at + 1;
    }
}
