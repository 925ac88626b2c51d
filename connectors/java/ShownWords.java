package shardmerge.connect;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.antlr.v4.runtime.CharStream;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.misc.Interval;

/**
 * Shows a statement to Debezium's parsers of DDL without words that servers take in the definition
 * of a column and these parsers do not. They stop at such a word, or take it for a part of the
 * type's name, at which Debezium's converters stop.
 *
 * <ul>
 *   <li>VARCHARACTER is shown as VARCHAR, and LONG CHAR VARYING as LONG.
 *   <li>BYTE, ASCII and UNICODE behind a type of text are hidden. They name a character set, which
 *       {@link #charsetOf} tells.
 *   <li>BINARY behind a type of text, ENUM or SET is hidden: it is a collation. So is SIGNED behind a
 *       number, and SIGNED, UNSIGNED and ZEROFILL behind YEAR: they change no value.
 *   <li>Of a length such as 19.5 the fraction is hidden: servers leave it out.
 *   <li>Before a text in quotes DATE, TIME and TIMESTAMP are hidden, and before REFERENCES in a
 *       column's definition the constraint's name.
 * </ul>
 *
 * <p>Blanks are shown in the place of what is hidden, so everything else stands where it stood. The
 * text of a part of the statement is what was written: it is handed on.
 *
 * <p>Source: sql_yacc.yy of MySQL 8.0 and MariaDB 10.11, rule {@code type}; Debezium 3.6.1 and 3.5.0,
 * {@code CaseChangingCharStream}, MySqlParser.g4 and MariaDBParser.g4, rule {@code dataType};
 * tests/integration/connect/test_streamed_values.py.
 */
public class ShownWords implements CharStream {

    private static final Set<String> TEXTS =
            Set.of("CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT",
                    "LONG", "ENUM", "SET");
    private static final Set<String> NUMBERS =
            Set.of("TINYINT", "INT1", "SMALLINT", "INT2", "MEDIUMINT", "MIDDLEINT", "INT3", "INT", "INTEGER", "INT4",
                    "BIGINT", "INT8", "DECIMAL", "DEC", "FIXED", "NUMERIC", "FLOAT", "FLOAT4", "FLOAT8", "DOUBLE",
                    "REAL", "YEAR");
    private static final Set<String> OTHERS =
            Set.of("BIT", "TIME", "TIMESTAMP", "DATETIME", "BINARY", "VARBINARY", "BLOB", "NCHAR", "NVARCHAR");
    /** Behind these a name stands, and no type. */
    private static final Set<String> BEFORE_NAMES = Set.of(".", "@", "CHANGE", "COLUMN", "EXISTS");

    private static final Map<String, String> CHARSETS =
            Map.of("BYTE", "binary", "ASCII", "latin1", "UNICODE", "ucs2");
    private static final Pattern PARTS = Pattern.compile(
            "(?<none>\\s+|/\\*.*?\\*/|(?:--(?=\\s)|#)[^\\n]*)"
                    + "|'(?:\\\\.|[^'\\\\])*+'|\"(?:\\\\.|[^\"\\\\])*+\"|`[^`]*+`"
                    + "|\\d+\\.\\d+(?![\\w$])|[\\w$\\u0080-\\uffff]+|.",
            Pattern.DOTALL);

    private final CharStream stream;
    private final boolean upper;
    private final List<Part> parts = new ArrayList<>();
    private final BitSet hidden = new BitSet();
    private final Map<Integer, String> charsets = new HashMap<>();

    /** A word, a literal or another character, which begins and ends at a code point's number. */
    private record Part(String word, int begin, int end) {}

    /**
     * Reads a statement.
     *
     * @param stream its text
     * @param upper whether it is shown in upper case; otherwise it is in lower case
     */
    protected ShownWords(CharStream stream, boolean upper) {
        this.stream = stream;
        this.upper = upper;
        String text = stream.size() == 0 ? "" : stream.getText(Interval.of(0, stream.size() - 1));
        int at = 0;
        for (Matcher part = PARTS.matcher(text); part.find(); ) {
            int end = at + text.codePointCount(part.start(), part.end());
            if (part.group("none") == null) {
                parts.add(new Part(part.group().toUpperCase(Locale.ROOT), at, end));
            }
            at = end;
        }
        for (int number = 0; number < parts.size(); number++) {
            if (number == 0 || !BEFORE_NAMES.contains(word(number - 1))) {
                type(number);
                other(number);
            }
        }
    }

    /** The character set that a hidden word gives the type of a column; null when there is none. */
    static String charsetOf(ParserRuleContext type) {
        return type.start.getInputStream() instanceof ShownWords shown
                ? shown.charsets.get(type.start.getStartIndex())
                : null;
    }

    private void type(int first) {
        String name = word(first);
        if (name.equals("VARCHARACTER")) {
            hide(parts.get(first).begin() + "VARCHAR".length(), parts.get(first).end());
        }
        boolean isText = switch (word(first + 1)) {
            case "SET" -> false; // CHARACTER SET.
            case "(" -> TEXTS.contains(name);
            default -> TEXTS.contains(name) && !Set.of("ENUM", "SET").contains(name);
        };
        if (isText) {
            charset(first, behindLength(behindName(first)));
        } else if (NUMBERS.contains(name)) {
            int next = behindLength(word(first + 1).equals("PRECISION") ? first + 2 : first + 1);
            for (; Set.of("SIGNED", "UNSIGNED", "ZEROFILL").contains(word(next)); next++) {
                if (name.equals("YEAR") || word(next).equals("SIGNED")) {
                    hide(next);
                }
            }
        } else if (OTHERS.contains(name)) {
            behindLength(first + 1);
        }
    }

    private void other(int first) {
        int next = first + 1;
        if (Set.of("DATE", "TIME", "TIMESTAMP").contains(word(first)) && word(next).startsWith("'")) {
            hide(first);
        } else if (word(first).equals("CONSTRAINT")) {
            int end = word(next).equals("REFERENCES") ? next : next + 1;
            if (word(end).equals("REFERENCES")) {
                hide(parts.get(first).begin(), parts.get(end).begin());
            }
        }
    }

    /** The part behind a name of a type of text, which may have two words more. */
    private int behindName(int first) {
        int next = first + 1;
        boolean isVarying = word(next + 1).equals("VARYING");
        return switch (word(first)) {
            case "CHAR", "CHARACTER" -> word(next).equals("VARYING") ? next + 1 : next;
            case "LONG" -> switch (word(next)) {
                case "VARCHAR", "VARCHARACTER" -> next + 1;
                case "CHAR", "CHARACTER" -> {
                    if (isVarying) {
                        hide(next);
                        hide(next + 1);
                    }
                    yield isVarying ? next + 2 : next;
                }
                default -> next;
            };
            default -> next;
        };
    }

    /** The part behind a length or elements in parentheses, or the same part. */
    private int behindLength(int first) {
        if (!word(first).equals("(")) {
            return first;
        }
        String length = word(first + 1);
        if (length.matches("\\d+\\.\\d+") && word(first + 2).equals(")")) {
            hide(parts.get(first + 1).begin() + length.indexOf('.'), parts.get(first + 1).end());
        }
        int next = first;
        while (!Set.of(")", "").contains(word(next))) {
            next++;
        }
        return next + 1;
    }

    private void charset(int type, int first) {
        for (int next = first; ; next++) {
            switch (word(next)) {
                case "BYTE", "ASCII", "UNICODE" -> {
                    charsets.put(parts.get(type).begin(), CHARSETS.get(word(next)));
                    hide(next);
                }
                case "BINARY" -> hide(next);
                case "CHARSET" -> next++;
                case "CHAR", "CHARACTER" -> {
                    if (!word(next + 1).equals("SET")) {
                        return;
                    }
                    next += 2;
                }
                default -> {
                    return;
                }
            }
        }
    }

    /** In upper case; "" behind the end. */
    private String word(int number) {
        return number < parts.size() ? parts.get(number).word() : "";
    }

    private void hide(int number) {
        hide(parts.get(number).begin(), parts.get(number).end());
    }

    private void hide(int begin, int end) {
        hidden.set(begin, end);
    }

    @Override
    public int LA(int number) {
        int found = stream.LA(number);
        if (found <= 0) {
            return found;
        }
        if (hidden.get(stream.index() + (number > 0 ? number - 1 : number))) {
            return ' ';
        }
        return upper ? Character.toUpperCase(found) : Character.toLowerCase(found);
    }

    @Override
    public String getText(Interval interval) {
        return stream.getText(interval);
    }

    @Override
    public void consume() {
        stream.consume();
    }

    @Override
    public int mark() {
        return stream.mark();
    }

    @Override
    public void release(int marker) {
        stream.release(marker);
    }

    @Override
    public int index() {
        return stream.index();
    }

    @Override
    public void seek(int index) {
        stream.seek(index);
    }

    @Override
    public int size() {
        return stream.size();
    }

    @Override
    public String getSourceName() {
        return stream.getSourceName();
    }
}
