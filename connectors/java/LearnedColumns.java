package shardmerge.connect;

import io.debezium.document.Array;
import io.debezium.document.Document;
import io.debezium.relational.Column;
import io.debezium.relational.Table;
import io.debezium.relational.TableEditor;
import io.debezium.relational.TableId;
import io.debezium.relational.Tables;
import io.debezium.relational.ddl.DdlParser;
import io.debezium.relational.history.HistoryRecord;
import io.debezium.relational.history.JsonTableChangeSerializer;
import io.debezium.relational.history.SchemaHistoryListener;
import io.debezium.relational.history.TableChanges.TableChange;
import io.debezium.relational.history.TableChanges.TableChangeType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Corrects columns that a connector learned wrongly before the jar had {@link TrueColumns} and {@link
 * ShownWords}, while it reads its schema history.
 *
 * <p>A record of the history has a statement and, if it changed a table, a description of the table
 * as it was afterwards. A connector that starts takes the descriptions, and so a column that was
 * wrong once stays wrong in all of them. Here the statement is read again, on the table as it was
 * before. Of a column that is then nullable and was not, or the other way round, or that had BINARY
 * or SIGNED in the name of its type, what the statement says counts. The character set remains that
 * of the description: what the server's default was then is not known.
 *
 * <p>This is done for statements that can have been misread, and then for every record of a table
 * whose columns were corrected. A statement that cannot be read, or gives other columns, corrects
 * nothing. The history itself stays as it is.
 *
 * <p>Source: Debezium 3.6.1 and 3.5.0, {@code AbstractSchemaHistory.recover}, which calls the
 * methods of this listener for each record, and in between applies it.
 */
final class LearnedColumns implements SchemaHistoryListener {

    private static final Logger LOGGER = LoggerFactory.getLogger(LearnedColumns.class);
    private static final Pattern DOUBTFUL = words("\\bIS\\s+(?:NOT\\s+)?NULL\\b|\\)\\s*BINARY\\b|\\bSIGNED\\b");
    private static final Pattern OF_OTHER_TABLES = words("\\bLIKE\\b|\\bSELECT\\b");
    private static final Pattern DOUBTFUL_TYPE = words("^(?:ENUM|SET) BINARY|\\bSIGNED\\b");

    private final SchemaHistoryListener next;
    private final boolean catalogFirst;
    /** Tables with corrected columns, as the record before described them. */
    private final Map<TableId, Table> described = new HashMap<>();

    private Tables tables;
    private DdlParser parser;
    private List<TableChange> changes = List.of();
    private Tables before;

    LearnedColumns(SchemaHistoryListener next, boolean catalogFirst) {
        this.next = next;
        this.catalogFirst = catalogFirst;
    }

    /** To be called before a history is read into these tables. */
    void begin(Tables into, DdlParser by) {
        tables = into;
        parser = by;
        described.clear();
    }

    /** To be called afterwards. */
    void end() {
        tables = null;
    }

    @Override
    public void onChangeFromHistory(HistoryRecord record) {
        next.onChangeFromHistory(record);
        changes = tables != null && isDoubtful(record.document()) ? changes(record.document()) : List.of();
        if (!changes.isEmpty()) {
            before = tables.clone();
        }
    }

    private boolean isDoubtful(Document record) {
        String statement = statement(record);
        if (DOUBTFUL.matcher(statement).find()) {
            return true;
        }
        return !described.isEmpty()
                && (OF_OTHER_TABLES.matcher(statement).find()
                        || changes(record).stream().anyMatch(change -> described.containsKey(before(change))));
    }

    @Override
    public void onChangeApplied(HistoryRecord record) {
        next.onChangeApplied(record);
        if (changes.isEmpty()) {
            return;
        }
        Tables again = again(record.document());
        for (TableChange change : changes) {
            Table earlier = described.remove(before(change));
            Table told = tables.forTable(change.getId());
            if (change.getType() != TableChangeType.DROP && told != null) {
                correct(change, told, earlier, again == null ? null : again.forTable(change.getId()));
            }
        }
    }

    /** The tables as the record's statement makes them; null when it has none, or is not read. */
    private Tables again(Document record) {
        String statement = statement(record);
        if (statement.isBlank()) {
            return null;
        }
        Tables made = before.clone();
        for (TableChange change : changes) {
            if (change.getType() == TableChangeType.CREATE) {
                made.removeTable(change.getId());
            }
        }
        try {
            parser.setCurrentDatabase(record.getString("databaseName"));
            parser.parse(statement, made);
        } catch (RuntimeException refused) {
            LOGGER.warn("What was learned of this statement remains, because it cannot be read again: {}", statement, refused);
            return null;
        }
        return made;
    }

    private void correct(TableChange change, Table told, Table earlier, Table again) {
        boolean isRead = again != null && again.retrieveColumnNames().equals(told.retrieveColumnNames());
        Table known = isRead ? again : before.forTable(before(change));
        TableEditor editor = told.edit();
        List<String> corrected = new ArrayList<>();
        for (Column column : told.columns()) {
            Column right = known == null ? null : known.columnWithName(column.name());
            boolean isTheSame = isRead || earlier != null && isLike(column, earlier.columnWithName(column.name()));
            if (right != null && isTheSame && isWrong(column, right)) {
                editor.updateColumn(
                        right.edit().charsetName(column.charsetName()).position(column.position()).create());
                corrected.add(column.name());
            }
        }
        if (!corrected.isEmpty()) {
            described.put(change.getId(), told);
            tables.overwriteTable(editor.create());
            LOGGER.info("Corrected what had been learned of {} of {}", corrected, change.getId());
        }
    }

    private static boolean isWrong(Column column, Column right) {
        return column.isOptional() != right.isOptional()
                || DOUBTFUL_TYPE.matcher(column.typeName()).find() && !column.typeName().equals(right.typeName());
    }

    private static boolean isLike(Column column, Column other) {
        return other != null && column.equals(other.edit().position(column.position()).create());
    }

    private List<TableChange> changes(Document record) {
        Array described = record.getArray("tableChanges");
        List<TableChange> found = new ArrayList<>();
        if (described != null) {
            new JsonTableChangeSerializer().deserialize(described, catalogFirst).forEach(found::add);
        }
        return found;
    }

    /** What a table's name was before a change. */
    private static TableId before(TableChange change) {
        return change.getPreviousId() != null ? change.getPreviousId() : change.getId();
    }

    private static String statement(Document record) {
        String statement = record.getString("ddl");
        return statement == null ? "" : statement;
    }

    private static Pattern words(String expression) {
        return Pattern.compile(expression, Pattern.CASE_INSENSITIVE);
    }

    @Override
    public void started() {
        next.started();
    }

    @Override
    public void stopped() {
        next.stopped();
    }

    @Override
    public void recoveryStarted() {
        next.recoveryStarted();
    }

    @Override
    public void recoveryStopped() {
        next.recoveryStopped();
    }
}
