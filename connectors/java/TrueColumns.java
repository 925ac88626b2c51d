package shardmerge.connect;

import org.antlr.v4.runtime.ParserRuleContext;

/**
 * What Debezium's parsers of MySQL ({@code legacy}) and MariaDB misread in the definition of a
 * column, apart from its type.
 *
 * <p>{@code c INT CHECK (c IS NOT NULL OR d > 5)}: the grammars have one rule for NOT NULL of a
 * column and for the end of {@code IS NOT NULL}. So a condition in a CHECK, a default or a generated
 * column made its column NOT NULL, and {@code IS NULL} made one that is NOT NULL nullable. A NULL
 * then becomes 0, '' or a zero date.
 *
 * <p>Source: Debezium 3.6.1 and 3.5.0, MySqlParser.g4 and MariaDBParser.g4 (nullNotnull), {@code
 * ColumnDefinitionParserListener}; tests/integration/connect/test_streamed_values.py.
 */
final class TrueColumns {

    private TrueColumns() {}

    /** Whether a rule is the end of IS [NOT] NULL, and not what a column is. */
    static boolean isOfCondition(ParserRuleContext rule) {
        return rule.getClass().getSimpleName().equals("NullNotnullContext")
                && !rule.getParent().getClass().getSimpleName().equals("NullColumnConstraintContext");
    }
}
