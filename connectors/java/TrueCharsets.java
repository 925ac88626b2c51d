package shardmerge.connect;

import io.debezium.antlr.AntlrDdlParser;
import io.debezium.connector.binlog.jdbc.BinlogSystemVariables;
import io.debezium.connector.binlog.jdbc.BinlogSystemVariables.BinlogScope;
import io.debezium.relational.TableEditor;
import io.debezium.relational.TableId;
import io.debezium.text.ParsingException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.antlr.v4.runtime.CommonToken;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.tree.ErrorNode;
import org.antlr.v4.runtime.tree.ParseTreeListener;
import org.antlr.v4.runtime.tree.TerminalNode;
import org.antlr.v4.runtime.tree.TerminalNodeImpl;

/**
 * Gives columns of text the character sets that the server gives them.
 *
 * <p>A binlog holds bytes, and Debezium decodes them with the character set that its parser of DDL
 * found for the column. A wrong one is not noticed: 'ä' becomes 'Ã¤'. Debezium's parsers of MySQL
 * ({@code legacy}) and MariaDB go wrong where a statement does not name the character set itself:
 *
 * <ol>
 *   <li>CREATE DATABASE without one: a new table gets that of the database which a snapshot
 *       described last, not the server's.
 *   <li>CREATE or ALTER DATABASE with COLLATE alone, or within a comment that the server executes:
 *       not read.
 *   <li>CREATE DATABASE IF NOT EXISTS on a database that exists: its character set is replaced.
 *   <li>CREATE TABLE with COLLATE alone, or with a default in such a comment: not read.
 *   <li>ALTER TABLE with another default: not read, so columns that are added get the old one.
 *   <li>COLLATE of a column behind NOT NULL or DEFAULT: not read. So is a collation that only
 *       MariaDB has, and a character set in such a comment.
 *   <li>BYTE, ASCII and UNICODE, see {@link ShownWords}.
 * </ol>
 *
 * <p>Debezium's listeners see each rule of a statement when it begins and when it ends. Here they
 * are told more than the statement says: what it leaves out is set before they see the rule. And
 * they are not told what they would take for something else, see {@link TrueColumns}.
 *
 * <p>Source: Debezium 3.6.1 and 3.5.0, {@code CreateAndAlterDatabaseParserListener},
 * {@code UseStatementParserListener}, {@code CreateTableParserListener}, {@code
 * AlterTableParserListener}; MySQL 8.0 manual, "Database Character Set and Collation", "Table
 * Character Set and Collation"; tests/integration/connect/test_charsets.py, tests/sources.
 */
public class TrueCharsets {

    private static final Set<String> CHARSETS =
            Set.of("armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
                    "cp852", "cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk",
                    "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2",
                    "latin5", "latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16",
                    "utf16le", "utf32", "utf8", "utf8mb3", "utf8mb4");
    private static final Set<String> OF_TEXT = Set.of("StringDataTypeContext", "LongVarcharDataTypeContext");

    /** What was known of a database before the statement that is being read; one per thread. */
    private static final ThreadLocal<String> BEFORE = new ThreadLocal<>();

    /** Called when a rule begins. */
    public static void delegateEnterRule(
            ParserRuleContext rule, Collection<ParseTreeListener> listeners, Collection<ParsingException> errors) {
        if (isKnown(rule)) {
            if (TrueColumns.isOfCondition(rule)) {
                return;
            }
            before(rule, listeners);
        }
        for (ParseTreeListener listener : listeners) {
            told(errors, () -> {
                listener.enterEveryRule(rule);
                rule.enterRule(listener);
            });
        }
    }

    /** Called when a rule ends. */
    public static void delegateExitRule(
            ParserRuleContext rule, Collection<ParseTreeListener> listeners, Collection<ParsingException> errors) {
        if (isKnown(rule) && TrueColumns.isOfCondition(rule)) {
            return;
        }
        for (ParseTreeListener listener : listeners) {
            told(errors, () -> {
                rule.exitRule(listener);
                listener.exitEveryRule(rule);
            });
        }
        if (isKnown(rule)) {
            after(rule, listeners);
        }
    }

    /** Called at what is no part of a statement. */
    public static void visitErrorNode(
            ErrorNode node, Collection<ParseTreeListener> listeners, Collection<ParsingException> errors) {
        listeners.forEach(listener -> told(errors, () -> listener.visitErrorNode(node)));
    }

    /** Called at each word of a statement. */
    public static void visitTerminal(
            TerminalNode node, Collection<ParseTreeListener> listeners, Collection<ParsingException> errors) {
        listeners.forEach(listener -> told(errors, () -> listener.visitTerminal(node)));
    }

    /** Debezium collects what a listener refuses, and goes on with the next. */
    private static void told(Collection<ParsingException> errors, Runnable tell) {
        try {
            tell.run();
        } catch (ParsingException refused) {
            AntlrDdlParser.accumulateParsingFailure(refused, errors);
        }
    }

    /** Debezium's other grammar of MySQL has rules of the same names with other parts. */
    private static boolean isKnown(ParserRuleContext rule) {
        String name = rule.getClass().getName();
        return name.startsWith("io.debezium.ddl.parser.mysql.legacy.")
                || name.startsWith("io.debezium.ddl.parser.mariadb.");
    }

    private static void before(ParserRuleContext rule, Collection<ParseTreeListener> listeners) {
        switch (rule.getClass().getSimpleName()) {
            case "CreateDatabaseContext", "AlterSimpleDatabaseContext" -> {
                Known known = Known.of(listeners);
                BEFORE.set(known.charsets().get(known.database(rule)));
                ExecutedComments.takeIn(rule);
            }
            case "ColumnCreateTableContext", "QueryCreateTableContext" -> {
                Known known = Known.of(listeners);
                String database = known.table(rule).catalog();
                BEFORE.set(known.charsets().get(database));
                ParserRuleContext columns = child(rule, "CreateDefinitions");
                String told = defaultOf(rule);
                String charset = told != null || columns == null
                        ? told
                        : ExecutedComments.behind(rule, columns.stop.getStopIndex());
                if (charset != null) {
                    // Where the listener looks for it when the table is complete.
                    known.charsets().put(database, charset);
                }
                ExecutedComments.takeIn(rule);
            }
            case "AlterTableContext" -> alter(rule, Known.of(listeners));
            case "ColumnDefinitionContext" -> column(rule);
            default -> {}
        }
    }

    private static void after(ParserRuleContext rule, Collection<ParseTreeListener> listeners) {
        switch (rule.getClass().getSimpleName()) {
            case "CreateDatabaseContext" -> {
                Known known = Known.of(listeners);
                boolean maybe = child(rule, "IfNotExists") != null
                        || ExecutedComments.sayIfNotExists(rule);
                String told = ofDatabase(rule, known);
                String made = told != null ? told : known.ofServer();
                known.keep(known.database(rule), maybe && BEFORE.get() != null ? BEFORE.get() : made);
            }
            case "AlterSimpleDatabaseContext" -> {
                Known known = Known.of(listeners);
                String told = ofDatabase(rule, known);
                known.keep(known.database(rule), told != null ? told : BEFORE.get());
            }
            case "ColumnCreateTableContext", "QueryCreateTableContext" -> {
                Known known = Known.of(listeners);
                known.keep(known.table(rule).catalog(), BEFORE.get());
            }
            case "UseStatementContext" -> Known.of(listeners).forgetCurrentDatabase();
            default -> {}
        }
    }

    /** A table's columns that are added, or get another type, have its default of afterwards. */
    private static void alter(ParserRuleContext rule, Known known) {
        TableId id = known.table(rule);
        TableEditor table = known.parser().databaseTables().editTable(id);
        String charset = null;
        for (ParserRuleContext specification : rule.getRuleContexts(ParserRuleContext.class)) {
            String told = switch (specification.getClass().getSimpleName()) {
                case "AlterByTableOptionContext", "AlterByDefaultCharsetContext" -> defaultOf(specification);
                default -> null;
            };
            charset = told != null ? told : charset;
        }
        if (charset != null && table != null) {
            known.parser().databaseTables().overwriteTable(table.setDefaultCharsetName(charset).create());
        }
    }

    /** Writes the character set of a column's collation beside its type, where it is looked for. */
    private static void column(ParserRuleContext rule) {
        ParserRuleContext type = child(rule, "DataType");
        if (type == null || !OF_TEXT.contains(type.getClass().getSimpleName()) || child(type, "CharsetName") != null) {
            return;
        }
        ParserRuleContext collation = child(type, "CollationName");
        for (ParserRuleContext constraint : rule.getRuleContexts(ParserRuleContext.class)) {
            ParserRuleContext told = switch (constraint.getClass().getSimpleName()) {
                case "CollateColumnConstraintContext" -> child(constraint, "CollationName");
                // The grammar takes COLLATE behind a default for a part of the default.
                case "DefaultColumnConstraintContext" ->
                        child(child(child(child(constraint, "DefaultValue"), "Constant"), "StringLiteral"), "CollationName");
                default -> null;
            };
            collation = told != null ? told : collation;
        }
        String charset = ShownWords.charsetOf(type);
        if (charset == null) {
            charset = collation == null ? ExecutedComments.ofColumn(rule) : ofCollation(collation.getText());
        }
        if (charset != null) {
            ParserRuleContext name = made(rule, "CharsetNameContext", type);
            name.addChild(new TerminalNodeImpl(new CommonToken(0, charset)));
            type.addChild(name);
        }
    }

    /** The default that table options name; null when they name none. */
    private static String defaultOf(ParserRuleContext rule) {
        String charset = null;
        String ofCollation = null;
        for (ParserRuleContext option : rule.getRuleContexts(ParserRuleContext.class)) {
            ParserRuleContext name = option.getClass().getSimpleName().equals("CharsetNameContext")
                    ? option
                    : child(option, "CharsetName");
            ParserRuleContext collation = child(option, "CollationName");
            switch (option.getClass().getSimpleName()) {
                case "TableOptionCharsetContext", "CharsetNameContext" ->
                        charset = name == null ? charset : unquoted(name.getText());
                case "TableOptionCollateContext" -> ofCollation = ofCollation(collation.getText());
                default -> {}
            }
        }
        return charset != null ? charset : ofCollation;
    }

    /** The default that the options of a database name; null when they name none. */
    private static String ofDatabase(ParserRuleContext rule, Known known) {
        String charset = null;
        String ofCollation = null;
        for (ParserRuleContext option : rule.getRuleContexts(ParserRuleContext.class)) {
            ParserRuleContext name = child(option, "CharsetName");
            ParserRuleContext collation = child(option, "CollationName");
            if (child(option, "CharSet") != null) {
                charset = name == null ? known.ofServer() : unquoted(name.getText());
            } else if (collation != null) {
                ofCollation = ofCollation(collation.getText());
            }
        }
        String told = charset != null ? charset : ofCollation;
        told = told != null ? told : ExecutedComments.behind(rule, rule.start.getStartIndex());
        return "DEFAULT".equalsIgnoreCase(told) ? known.ofServer() : told;
    }

    /** Every collation of a server begins with its character set, but for MariaDB's of several. */
    static String ofCollation(String collation) {
        String charset = unquoted(collation).toLowerCase(Locale.ROOT).split("_", 2)[0];
        return CHARSETS.contains(charset) ? charset : null;
    }

    private static String unquoted(String text) {
        return text.replaceAll("['\"`]", "");
    }

    /** The first part of that rule, or of an alternative of it; null when there is none. */
    private static ParserRuleContext child(ParserRuleContext rule, String name) {
        if (rule == null) {
            return null;
        }
        for (ParserRuleContext part : rule.getRuleContexts(ParserRuleContext.class)) {
            for (Class<?> is = part.getClass(); is != ParserRuleContext.class; is = is.getSuperclass()) {
                if (is.getSimpleName().equals(name + "Context")) {
                    return part;
                }
            }
        }
        return null;
    }

    /** A part of the same grammar as {@code like}: each parser has classes of its own. */
    private static ParserRuleContext made(ParserRuleContext like, String name, ParserRuleContext parent) {
        try {
            Class<?> kind = Class.forName(
                    like.getClass().getDeclaringClass().getName() + "$" + name, true, like.getClass().getClassLoader());
            return (ParserRuleContext)
                    kind.getConstructor(ParserRuleContext.class, int.class).newInstance(parent, -1);
        } catch (ReflectiveOperationException error) {
            throw unlike(error);
        }
    }

    private static IllegalStateException unlike(ReflectiveOperationException error) {
        return new IllegalStateException("Debezium's parser of DDL is not the one that shardmerge knows", error);
    }

    /** What the parser of a statement knows. Its listeners know it. */
    private record Known(AntlrDdlParser<?, ?> parser, Map<String, String> charsets) {

        @SuppressWarnings("unchecked")
        static Known of(Collection<ParseTreeListener> listeners) {
            try {
                ParseTreeListener first = listeners.iterator().next();
                Field field = first.getClass().getDeclaredField("parser");
                field.setAccessible(true);
                AntlrDdlParser<?, ?> parser = (AntlrDdlParser<?, ?>) field.get(first);
                Method charsets = parser.getClass().getMethod("charsetNameForDatabase");
                return new Known(parser, (Map<String, String>) charsets.invoke(parser));
            } catch (ReflectiveOperationException error) {
                throw unlike(error);
            }
        }

        String ofServer() {
            return parser.systemVariables().getVariable(BinlogSystemVariables.CHARSET_NAME_SERVER);
        }

        String database(ParserRuleContext rule) {
            ParserRuleContext name = child(rule, "Uid");
            return name == null ? parser.currentSchema() : parser.withoutQuotes(name);
        }

        TableId table(ParserRuleContext rule) {
            try {
                ParserRuleContext name = child(child(rule, "TableName"), "FullId");
                Method id = parser.getClass().getMethod("parseQualifiedTableId", name.getClass());
                return (TableId) id.invoke(parser, name);
            } catch (ReflectiveOperationException error) {
                throw unlike(error);
            }
        }

        void keep(String database, String charset) {
            if (charset != null) {
                charsets.put(database, charset);
            } else {
                charsets.remove(database);
            }
        }

        /** A snapshot's last USE says nothing of statements that are streamed afterwards. */
        void forgetCurrentDatabase() {
            parser.systemVariables().setVariable(BinlogScope.SESSION, BinlogSystemVariables.CHARSET_NAME_DATABASE, null);
        }
    }
}
