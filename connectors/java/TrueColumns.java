package shardmerge.connect;

import java.util.Locale;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.tree.ParseTree;
import org.antlr.v4.runtime.tree.TerminalNode;

/**
 * What Debezium's parsers of MySQL ({@code legacy}) and MariaDB misread in the definition of a
 * column, apart from its character set.
 *
 * <ul>
 *   <li>{@code c INT CHECK (c IS NOT NULL OR d > 5)}: the grammars have one rule for NOT NULL of a
 *       column and for the end of {@code IS NOT NULL}. So a condition in a CHECK, a default or a
 *       generated column made its column NOT NULL, and {@code IS NULL} made one that is NOT NULL
 *       nullable. A NULL then becomes 0, '' or a zero date.
 *   <li>ENUM and SET with BINARY, FLOAT with SIGNED: these words become part of the type's name,
 *       which Debezium's converters then do not know, and stop. They change no value.
 * </ul>
 *
 * <p>Source: Debezium 3.6.1 and 3.5.0, MySqlParser.g4 and MariaDBParser.g4 (nullNotnull,
 * dataType), {@code ColumnDefinitionParserListener}; tests/integration/connect/test_streamed_values.py.
 */
final class TrueColumns {

    private TrueColumns() {}

    /** Whether a rule is the end of IS [NOT] NULL, and not what a column is. */
    static boolean isOfCondition(ParserRuleContext rule) {
        return rule.getClass().getSimpleName().equals("NullNotnullContext")
                && !rule.getParent().getClass().getSimpleName().equals("NullColumnConstraintContext");
    }

    /** Takes words that change no value out of the type of a column; null is for none. */
    static void withoutIdleWords(ParserRuleContext type) {
        if (type == null) {
            return;
        }
        String idle = switch (type.getClass().getSimpleName()) {
            case "CollectionDataTypeContext" -> "BINARY";
            case "DimensionDataTypeContext" -> "SIGNED";
            default -> "";
        };
        type.children.removeIf(part -> part instanceof TerminalNode && isWord(part, idle));
    }

    private static boolean isWord(ParseTree part, String word) {
        return part.getText().toUpperCase(Locale.ROOT).equals(word);
    }
}
