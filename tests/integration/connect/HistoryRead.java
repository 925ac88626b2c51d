package shardmerge.connect;

import io.debezium.antlr.AntlrDdlParser;
import io.debezium.config.Configuration;
import io.debezium.connector.binlog.jdbc.BinlogSystemVariables;
import io.debezium.connector.binlog.jdbc.BinlogSystemVariables.BinlogScope;
import io.debezium.connector.mysql.antlr.MySqlPtAntlrDdlParser;
import io.debezium.connector.mysql.charset.MySqlCharsetRegistry;
import io.debezium.document.DocumentReader;
import io.debezium.relational.Column;
import io.debezium.relational.Table;
import io.debezium.relational.TableId;
import io.debezium.relational.Tables;
import io.debezium.relational.Tables.TableFilter;
import io.debezium.relational.history.AbstractSchemaHistory;
import io.debezium.relational.history.HistoryRecord;
import io.debezium.relational.history.SchemaHistoryListener;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.function.Consumer;

/**
 * Tells what a connector that starts at b.000009:4 knows of its tables after it has read a schema
 * history. A line that comes in is a record; an empty one ends a history. For each column it tells a
 * line {@code known table column NULL}, with its type's name, elements and character set, and at the
 * end {@code known.}
 */
final class HistoryRead extends AbstractSchemaHistory {

    private final List<HistoryRecord> records = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Replacements.takeOver();
        HistoryRead history = new HistoryRead();
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            String line = lines.nextLine();
            if (!line.isEmpty()) {
                history.records.add(new HistoryRecord(DocumentReader.defaultReader().read(line)));
            } else {
                history.tell();
                history = new HistoryRead();
            }
        }
    }

    private void tell() throws Exception {
        LearnedColumns columns = new LearnedColumns(SchemaHistoryListener.NOOP, true);
        configure(Configuration.empty(), new TrueSchemaHistory.BinlogOrder(), columns, true);
        AntlrDdlParser<?, ?> parser = new MySqlPtAntlrDdlParser(
                true, false, false, TableFilter.includeAll(), new MySqlCharsetRegistry());
        parser.systemVariables()
                .setVariable(BinlogScope.GLOBAL, BinlogSystemVariables.CHARSET_NAME_SERVER, "utf8mb4");
        Tables tables = new Tables();
        columns.begin(tables, parser);
        recover(Map.of(Map.of("server", "s1"), Map.of("file", "b.000009", "pos", 4L)), tables, parser);
        columns.end();
        for (TableId id : tables.tableIds()) {
            Table table = tables.forTable(id);
            for (Column column : table.columns()) {
                System.out.println(String.join(" ", "known", id.table(), column.name(),
                        column.isOptional() ? "NULL" : "NOT NULL", column.typeName(),
                        column.enumValues().toString(), String.valueOf(column.charsetName())));
            }
        }
        System.out.println("known.");
    }

    @Override
    protected void recoverRecords(Consumer<HistoryRecord> read) {
        records.forEach(read);
    }

    @Override
    protected void storeRecord(HistoryRecord record) {
        throw new UnsupportedOperationException("a history that is only read");
    }

    @Override
    public boolean exists() {
        return true;
    }

    @Override
    public boolean storageExists() {
        return true;
    }
}
