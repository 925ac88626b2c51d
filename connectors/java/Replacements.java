package shardmerge.connect;

import com.github.shyiko.mysql.binlog.event.deserialization.ColumnType;
import com.github.shyiko.mysql.binlog.event.deserialization.TableMapEventMetadataDeserializer;
import io.debezium.antlr.AntlrDdlParserListener;
import io.debezium.antlr.CaseChangingCharStream;
import io.debezium.antlr.ProxyParseTreeListenerUtil;
import io.debezium.connector.base.ChangeEventQueueMetrics;
import io.debezium.pipeline.source.spi.EventMetadataProvider;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.net.URI;
import java.net.URL;

/**
 * Puts classes of this jar in the place of classes of Debezium, for which Debezium has no setting:
 * {@link NoTableMetadata}, {@link TrueCharsets}, {@link ShownWords}, and two that only save time,
 * {@code EventFormatter} and {@code ChangeEventQueue}.
 *
 * <p>Debezium makes or calls them by name. So a class of that name is defined before Debezium's own
 * is loaded.
 */
final class Replacements {

    private Replacements() {}

    /**
     * Lets Debezium, of the same plugin, use these classes instead of its own. May be called again.
     *
     * @throws IllegalStateException Debezium has loaded a class of its own already, or refuses ours
     */
    static synchronized void takeOver() {
        // Each beside a class of its package. Without Debezium's jars here, these lines fail.
        define(ColumnType.class, "TableMapEventMetadataDeserializer");
        define(AntlrDdlParserListener.class, "ProxyParseTreeListenerUtil");
        define(AntlrDdlParserListener.class, "CaseChangingCharStream");
        define(EventMetadataProvider.class, "EventFormatter");
        define(ChangeEventQueueMetrics.class, "ChangeEventQueue");
        define(ChangeEventQueueMetrics.class, "ChangeEventQueue$Builder");
        check("binlog reader", NoTableMetadata.class.isAssignableFrom(TableMapEventMetadataDeserializer.class));
        check("metrics", hasField("io.debezium.pipeline.source.spi.EventFormatter", "TEXT"));
        check("queue", hasField("io.debezium.connector.base.ChangeEventQueue", "IDLE_NANOS"));
        check("parser of DDL", TrueCharsets.class.isAssignableFrom(ProxyParseTreeListenerUtil.class));
        check("lexer of DDL", ShownWords.class.isAssignableFrom(CaseChangingCharStream.class));
    }

    private static void define(Class<?> beside, String name) {
        try {
            byte[] own = bytesOf(beside.getPackageName().replace('.', '/') + "/" + name + ".class");
            MethodHandles.privateLookupIn(beside, MethodHandles.lookup()).defineClass(own);
        } catch (LinkageError thereIsOne) {
            // Whether it is ours is checked afterwards.
        } catch (IllegalAccessException | IOException error) {
            throw new IllegalStateException("Debezium cannot be given another " + name, error);
        }
    }

    /** Whether a class has a private field of ours. */
    private static boolean hasField(String name, String field) {
        try {
            return Class.forName(name).getDeclaredField(field) != null;
        } catch (ClassNotFoundException | NoSuchFieldException itIsDebeziums) {
            return false;
        }
    }

    private static void check(String part, boolean isOurs) {
        if (!isOurs) {
            throw new IllegalStateException(
                    "Debezium's " + part + " has been in use before shardmerge's jar was: restart this"
                            + " worker, with the jar in the folder of Debezium's connector");
        }
    }

    /** A class's bytes, from our own jar: Debezium's class has the same name. */
    private static byte[] bytesOf(String path) throws IOException {
        URL jar = Replacements.class.getProtectionDomain().getCodeSource().getLocation();
        try (InputStream bytes = URI.create("jar:" + jar + "!/" + path).toURL().openStream()) {
            return bytes.readAllBytes();
        }
    }
}
