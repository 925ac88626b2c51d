package shardmerge.connect;

import io.debezium.antlr.AntlrDdlParser;
import io.debezium.config.CommonConnectorConfig.BinaryHandlingMode;
import io.debezium.config.CommonConnectorConfig.EventConvertingFailureHandlingMode;
import io.debezium.config.Configuration;
import io.debezium.connector.binlog.BinlogConnectorConfig;
import io.debezium.connector.binlog.jdbc.BinlogSystemVariables;
import io.debezium.connector.binlog.jdbc.BinlogSystemVariables.BinlogScope;
import io.debezium.jdbc.JdbcValueConverters.BigIntUnsignedMode;
import io.debezium.jdbc.JdbcValueConverters.DecimalMode;
import io.debezium.jdbc.TemporalPrecisionMode;
import io.debezium.relational.CustomConverterRegistry;
import io.debezium.relational.DefaultValueConverter;
import io.debezium.relational.Table;
import io.debezium.relational.TableId;
import io.debezium.relational.TableSchema;
import io.debezium.relational.TableSchemaBuilder;
import io.debezium.relational.Tables;
import io.debezium.relational.Tables.TableFilter;
import io.debezium.relational.ValueConverterProvider;
import io.debezium.schema.DefaultTopicNamingStrategy;
import io.debezium.schema.FieldNameSelector;
import io.debezium.schema.SchemaNameAdjuster;
import io.debezium.spi.converter.CustomConverter;
import java.lang.reflect.Constructor;
import java.time.temporal.TemporalAdjuster;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/**
 * Tells for each line, such as {@code int:1<TAB>CREATE TABLE t (c INT)}, what Debezium writes of a
 * row whose column {@code c} has that value in the binlog, or why it stops. Several statements are
 * parted by {@code ;;}. All other columns have NULL. What it tells begins with {@code c = }: among
 * the lines are Debezium's messages, too. Line breaks of a value are told as a backslash and n.
 *
 * <p>The first argument is mysql or mariadb; each other one is a property of the converter, such
 * as {@code flavour=mariadb}.
 */
final class StreamedValues {

    private static final TableId TABLE = new TableId("d", null, "t");

    @SuppressWarnings({"unchecked", "rawtypes"})
    public static void main(String[] arguments) throws Exception {
        Replacements.takeOver();
        boolean isMariaDb = arguments[0].equals("mariadb");
        String prefix = "io.debezium.connector." + arguments[0] + ".";
        String name = isMariaDb ? "MariaDb" : "MySql";
        Configuration settings = Configuration.create()
                .with("topic.prefix", "x").with("database.hostname", "h").with("database.user", "u").build();
        BinlogConnectorConfig config = (BinlogConnectorConfig) made(prefix + name + "ConnectorConfig", settings);
        TemporalAdjuster asItIs = moment -> moment;
        Object values = made(prefix + "jdbc." + name + "ValueConverters", DecimalMode.STRING,
                TemporalPrecisionMode.ADAPTIVE_TIME_MICROSECONDS, BigIntUnsignedMode.PRECISE,
                BinaryHandlingMode.BASE64, asItIs, EventConvertingFailureHandlingMode.FAIL,
                config.getServiceRegistry());
        TableSchemaBuilder schemas = new TableSchemaBuilder(
                (ValueConverterProvider) values,
                (DefaultValueConverter) made(prefix + "jdbc." + name + "DefaultValueConverter", values),
                SchemaNameAdjuster.NO_OP, new CustomConverterRegistry(List.of((CustomConverter) exact(arguments))),
                SchemaBuilder.struct().build(), SchemaBuilder.struct().build(),
                FieldNameSelector.defaultSelector(SchemaNameAdjuster.NO_OP), false,
                EventConvertingFailureHandlingMode.FAIL);
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split("\t", 2);
            AntlrDdlParser<?, ?> parser = (AntlrDdlParser<?, ?>) made(
                    prefix + "antlr." + (isMariaDb ? "MariaDbAntlrDdlParser" : "MySqlPtAntlrDdlParser"),
                    true, false, false, TableFilter.includeAll(), made(prefix + "charset." + name + "CharsetRegistry"));
            parser.setCurrentSchema(TABLE.catalog());
            parser.systemVariables()
                    .setVariable(BinlogScope.GLOBAL, BinlogSystemVariables.CHARSET_NAME_SERVER, "utf8mb4");
            Tables tables = new Tables();
            try {
                for (String statement : parts[1].split(";;")) {
                    parser.parse(statement, tables);
                }
            } catch (RuntimeException refused) {
                System.out.println("c = refused: " + oneLine(refused));
                continue;
            }
            Table table = tables.forTable(TABLE);
            TableSchema schema = schemas.create(DefaultTopicNamingStrategy.create(config), table, null, null, null);
            Object[] row = new Object[table.columns().size()];
            row[table.columnWithName("c").position() - 1] = raw(parts[0]);
            try {
                Struct written = schema.valueFromColumnData(row);
                written.validate();
                System.out.println("c = " + oneLine(written.getWithoutDefault("c")));
            } catch (RuntimeException refused) {
                Throwable reason = refused;
                while (reason.getCause() != null) {
                    reason = reason.getCause();
                }
                System.out.println("c = stops: " + reason.getMessage());
            }
        }
    }

    private static String oneLine(Object written) {
        return String.valueOf(written).replace("\n", "\\n").replace("\r", "\\r");
    }

    private static ExactValues exact(String[] arguments) {
        Properties properties = new Properties();
        properties.setProperty("binary.handling.mode", "base64");
        for (String argument : List.of(arguments).subList(1, arguments.length)) {
            String[] parts = argument.split("=", 2);
            properties.setProperty(parts[0], parts[1]);
        }
        ExactValues exact = new ExactValues();
        exact.configure(properties);
        return exact;
    }

    private static Object raw(String told) {
        String[] parts = told.split(":", 2);
        return switch (parts[0]) {
            case "null" -> null;
            case "int" -> Integer.valueOf(parts[1]);
            case "long" -> Long.valueOf(parts[1]);
            case "float" -> Float.valueOf(parts[1]);
            case "double" -> Double.valueOf(parts[1]);
            case "hex" -> HexFormat.of().parseHex(parts[1]);
            default -> throw new IllegalArgumentException(told);
        };
    }

    /** Either connector has classes of its own, with the same constructors. */
    private static Object made(String name, Object... arguments) throws ReflectiveOperationException {
        for (Constructor<?> constructor : Class.forName(name).getConstructors()) {
            if (constructor.getParameterCount() == arguments.length) {
                return constructor.newInstance(arguments);
            }
        }
        throw new ClassNotFoundException(name + " with " + arguments.length + " arguments");
    }
}
